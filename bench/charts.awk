# Of each candidate: name, median, least and largest, for bench/charts.gp.  Not of
# many sequences, which would be off the scale.

$1 == measure && $4 == metric && $2 !~ /each/ {
	if (!($2 in n))
		name[++names] = $2
	v[$2, ++n[$2]] = $5
}

END {
	for (c = 1; c <= names; c++) {
		m = sorted(name[c])
		# What costs no more than the empty call may come out below it.
		printf "\"%s\"\t%s\t%s\t%s\n", name[c], middle(m) < 0 ? 0 : middle(m), s[1], s[m]
	}
}
