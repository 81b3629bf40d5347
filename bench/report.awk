# A table of bench/report: of one "line" of bench/measures, in a "style", plain or
# markdown, from the results.

function form(x, f,   text) {
	if (f == "B")
		f = 0
	text = sprintf("%." f "f", x)
	while (match(text, /[0-9][0-9][0-9][0-9]($|[,.])/) && text !~ /\.[0-9]*[0-9][0-9][0-9][0-9]/)
		text = substr(text, 1, RSTART) "," substr(text, RSTART + 1)
	return text
}

function spread(key, f, always,   m) {
	m = sorted(key)
	if (m == 0)
		return ""
	if (form(s[1], f) == form(s[m], f) || !always)
		return form(middle(m), f)
	return form(middle(m), f) " [" form(s[1], f) ".." form(s[m], f) "]"
}

function put(cell, r, c) {
	cells[r, c] = cell
	if (length(cell) > width[c])
		width[c] = length(cell)
}

BEGIN {
	split(line, part, "|")
	measure = part[1]; title = part[2]; base = part[3]
	columns = split(part[5], column, ",")
	for (i = 1; i <= columns; i++) {
		split(column[i], x, ":")
		metric[i] = x[1]; decimals[i] = x[2]; heading[i] = x[3]
	}
}

$1 == measure {
	if (!($2 in seen)) {
		seen[$2] = 1
		candidate[++candidates] = $2
	}
	key = $2 SUBSEP $4
	v[key, ++n[key]] = $5
	if ($4 == metric[1]) {
		at[$2, $3] = $5
		if (!($3 in rounds))
			rounds[$3] = 1
	}
}

END {
	if (candidates == 0) {
		if (style != "plain")
			print "Not measured in this run."
		exit
	}
	put("", 0, 0)
	for (c = 1; c <= columns; c++)
		put(heading[c], 0, c + (c > 1 && base != ""))
	if (base != "")
		put(part[4], 0, 2)
	for (r = 1; r <= candidates; r++) {
		put(candidate[r], r, 0)
		for (c = 1; c <= columns; c++)
			put(spread(candidate[r] SUBSEP metric[c], decimals[c], c == 1), r, c + (c > 1 && base != ""))
		if (base != "") {
			for (i in rounds)
				if ((candidate[r], i) in at && at[base, i] > 0) {
					key = candidate[r] SUBSEP "ratio to the base"
					v[key, ++n[key]] = at[candidate[r], i] / at[base, i]
				}
			put(candidate[r] == base ? "1.00" : spread(candidate[r] SUBSEP "ratio to the base", 2, 1), r, 2)
		}
	}
	all = columns + (base != "")
	if (style == "plain")
		print title "\n"
	for (r = 0; r <= candidates; r++) {
		text = style == "plain" ? "" : "|"
		for (c = 0; c <= all; c++)
			if (style == "plain")
				text = text sprintf(c ? "  %" width[c] "s" : "  %-" width[c] "s", cells[r, c])
			else
				text = text " " cells[r, c] " |"
		sub(/ +$/, "", text)
		print text
		if (r == 0 && style != "plain") {
			text = "|"
			for (c = 0; c <= all; c++)
				text = text (c ? "---:|" : "---|")
			print text
		}
	}
}
