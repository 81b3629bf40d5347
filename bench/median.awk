# For bench/report and bench/charts.

# Sort the n[key] values of v[key, i] into s; return how many.
function sorted(key,   i, j, x) {
	for (i = 1; i <= n[key]; i++) {
		x = v[key, i]
		for (j = i - 1; j >= 1 && s[j] > x; j--)
			s[j + 1] = s[j]
		s[j + 1] = x
	}
	return n[key]
}

function middle(m) {
	return m % 2 ? s[(m + 1) / 2] : (s[m / 2] + s[m / 2 + 1]) / 2
}
