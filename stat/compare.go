package stat

import (
	"math"
	"slices"
)

// MannWhitney tests whether one of two samples tends to have larger
// observations than the other. superior is the chance that an observation of b
// is larger than one of a, with half of the ties: 0.5 where there is nothing
// between them. p is the chance to see at least this difference where there is
// none: exact for small samples without ties, else by the normal approximation
// with a correction for ties. Empty samples differ in nothing.
func MannWhitney(a, b Sample) (superior, p float64) {
	n, m := len(a), len(b)
	if n == 0 || m == 0 {
		return 0.5, 1
	}
	u, ties := rankSum(a, b)
	pairs := float64(n) * float64(m)
	superior = u / pairs
	const exactMost = 20
	if ties == 0 && n <= exactMost && m <= exactMost {
		return superior, exactMannWhitney(n, m, math.Min(u, pairs-u))
	}
	total := float64(n + m)
	variance := pairs / 12 * (total + 1 - ties/(total*(total-1)))
	if variance <= 0 {
		return superior, 1
	}
	z := (math.Abs(u-pairs/2) - 0.5) / math.Sqrt(variance)
	return superior, min(math.Erfc(max(z, 0)/math.Sqrt2), 1)
}

// rankSum is the number of pairs in which b's observation is larger, ties being
// half of one, and the sum of t^3-t over groups of t equal observations.
func rankSum(a, b Sample) (u, ties float64) {
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		x := math.Inf(1)
		if i < len(a) {
			x = a[i]
		}
		if j < len(b) {
			x = min(x, b[j])
		}
		fromA, fromB := 0, 0
		for ; i < len(a) && a[i] == x; i++ {
			fromA++
		}
		for ; j < len(b) && b[j] == x; j++ {
			fromB++
		}
		u += float64(fromB) * (float64(i-fromA) + float64(fromA)/2)
		t := float64(fromA + fromB)
		ties += t*t*t - t
	}
	return u, ties
}

// exactMannWhitney is the chance, on both sides together, of a statistic of at
// most u: counted over all ways in which n and m observations may interleave.
func exactMannWhitney(n, m int, u float64) float64 {
	ways := make([][]float64, m+1) // ways[j][u]: with j of b, of the i of a so far
	for j := range ways {
		ways[j] = make([]float64, n*m+1)
		ways[j][0] = 1
	}
	for i := 1; i <= n; i++ {
		next := make([][]float64, m+1)
		for j := range next {
			next[j] = make([]float64, n*m+1)
			for v := range next[j] {
				// The largest of all is one of a, above j of b, or one of b.
				if v >= j {
					next[j][v] += ways[j][v-j]
				}
				if j > 0 {
					next[j][v] += next[j-1][v]
				}
			}
		}
		ways = next
	}
	below, all := 0.0, 0.0
	for v, w := range ways[m] {
		all += w
		if float64(v) <= u {
			below += w
		}
	}
	return min(2*below/all, 1)
}

// Shift is by how much b's observations are typically larger than a's (the
// median of all differences, of Hodges and Lehmann), with an interval. Samples
// so large that all differences would not fit are thinned evenly.
func Shift(a, b Sample, level float64) (float64, Interval) {
	const most = 1000
	a, b = thinned(a, most), thinned(b, most)
	n, m := len(a), len(b)
	if n == 0 || m == 0 {
		return 0, Interval{Level: level, Warnings: []Warning{TooFew}}
	}
	differences := make([]float64, 0, n*m)
	for _, x := range a {
		for _, y := range b {
			differences = append(differences, y-x)
		}
	}
	slices.Sort(differences)
	s := Sample(differences)
	pairs := float64(n) * float64(m)
	z := math.Sqrt2 * math.Erfinv(level)
	k := int(pairs/2 - z*math.Sqrt(pairs*float64(n+m+1)/12))
	out := Interval{Low: s[max(k, 0)], High: s[len(s)-1-max(k, 0)], Level: level}
	if k < 0 {
		out.Warnings = append(out.Warnings, TooFew)
	}
	return s.Median(), out
}

// thinned keeps at most n of the observations, evenly by rank.
func thinned(s Sample, n int) Sample {
	if len(s) <= n {
		return s
	}
	out := make(Sample, n)
	for i := range out {
		out[i] = s.Quantile((float64(i) + 0.5) / float64(n))
	}
	return out
}
