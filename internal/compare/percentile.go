package compare

import (
	"fmt"
	"math"

	"github.com/tacho-bench/tacho/stat"
)

// testPercentile compares a percentile of two runs by the share of values above it: the runs differ if
// one of them has more values above the percentile of both together. The error of the share gives the
// error of the percentile, through the values around it.
func (d *Delta) testPercentile(from, to float64, x, y *meter, most, floor float64) {
	q := x.P / 100
	a, b := x.all(), y.all()
	if need := int(math.Ceil(5/min(q, 1-q) - noise)); min(a.N(), b.N()) < need { // values above a percentile for a test
		d.NoTest = fmt.Sprintf("too few values: a test of p%g needs %d in each run", x.P, need)
		return
	}
	both := &stat.Digest{}
	both.Merge(a)
	both.Merge(b)
	above, s := sharesAbove(x, y, most, both.Distribution().Quantile(q))
	p := stat.StudentP(math.Log(to/from)/math.Sqrt(floor), mostFreedom)
	switch {
	case s.se > noise:
		p = max(p, stat.StudentP(above/s.se, s.freedom))
	case p < 1-intervalLevel: // otherwise equal runs differ as much
		d.NoTest = noSpread
		return
	}
	values, half := b.Distribution(), s.half()
	between := math.Exp(2 * math.Sqrt(floor)) // variation not visible in the requests
	d.P = &p
	if s.se > noise && q-half > 0 && q+half < 1 { // otherwise the interval ends beyond all values
		low, high := values.Quantile(q-half)/between-from, values.Quantile(q+half)*between-from
		d.Low, d.High = &low, &high
	}
}

// sharesAbove returns the difference of the shares of values above a limit, and its standard error.
func sharesAbove(x, y *meter, most, limit float64) (float64, spread) {
	share := func(m *meter) (above [stretches]float64, mean float64) {
		n, total := 0.0, 0.0
		for i, v := range m.values {
			above[i] = float64(v.Above(limit))
			n, total = n+float64(v.N()), total+above[i]
		}
		for i, v := range m.values { // effect of each stretch on the total share
			above[i] = stretches * (above[i] - float64(v.N())*total/n) / n
		}
		return above, total / n
	}
	a, of := share(x)
	b, to := share(y)
	for i := range b {
		b[i] -= a[i]
	}
	return to - of, spreadOf(b[:], most)
}
