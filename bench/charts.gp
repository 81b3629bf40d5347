# The charts of bench/report, which defines the data and "directory".  White, so
# that the text can be read in dark mode as well.

ours = 0x2f6f9f
others = 0xb4bcc4
colour(name) = strstrt(name, "next_id") == 1 ? ours : others
sessions(name) = real(word(name, 1))
font = "Helvetica,Arial,sans-serif,13"
# Horizontal bars from 0, the first on top, with the figure at the end of each.
bars = "using (0.5 * $2):0:(0):2:($0 - 0.34):($0 + 0.34):(colour(strcol(1)))"
look = "notitle with boxxyerror fillstyle solid noborder lc rgb variable"
label = "notitle with labels left font ',12'"

stats $ns using 2 name "ns" nooutput
stats $us using 2 name "us" nooutput
stats $index using 2 name "index" nooutput
stats $rate using (sessions(strcol(1))) name "sessions" nooutput

set terminal svg size 760,(80 + 34 * ns_records) font font background "#ffffff" noenhanced
set output directory."cost.svg"
unset key
set border 0
set tics scale 0
set title font ",15" offset 0,-0.3
set title "Cost of a call, in nanoseconds"
set xrange [0:ns_max * 1.15]
set yrange [ns_records - 0.4:-0.6]
set lmargin 30
unset xtics
plot $ns @bars:ytic(1) @look, "" using 2:0:(sprintf("  %.0f ns", $2)) @label

set terminal svg size 860,(80 + 34 * us_records) font font background "#ffffff" noenhanced
set output directory."insert.svg"
set multiplot
set lmargin at screen 0.27
set rmargin at screen 0.61
set xrange [0:us_max * 1.3]
set yrange [us_records - 0.4:-0.6]
set title "Bulk INSERT, microseconds a row"
plot $us @bars:ytic(1) @look, "" using 2:0:(sprintf("  %.2f", $2)) @label
set lmargin at screen 0.65
set rmargin at screen 0.99
set xrange [0:index_max * 1.3]
set title "Primary key, bytes a row"
set format y ""
plot $index @bars @look, "" using 2:0:(sprintf("  %.1f", $2)) @label
unset multiplot

reset
set terminal svg size 760,360 font font background "#ffffff" noenhanced
set output directory."sustained.svg"
set tics scale 0
set title font ",15" offset 0,-0.3
set title "IDs a second from one sequence, in millions, by sessions"
set logscale x 2
set border 3 lc rgb "#888888"
set grid ytics lc rgb "#dddddd" lt 1
set yrange [0:*]
set xrange [0.9:sessions_max * 1.1]
set key below maxrows 1 samplen 1.5 width -8 font ",12"
million = "using (sessions(strcol(1))):($2 / 1e6):xtic(gprintf('% h', sessions(strcol(1)))) with linespoints lw 2.5 pt 7 ps 0.7"
plot $burst @million lc rgb 0x88b4d6 title "next_id(), max_lead = 1h", \
	$rate @million lc rgb ours title "next_id(), in the long run", \
	$nextval @million lc rgb others title "nextval()"
