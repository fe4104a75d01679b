package compare

import (
	"math"

	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/stat"
)

// A tally counts the failed requests of a part of a side: of a stretch of a single run, or of one of
// several runs.
type tally struct{ failed, ended int }

func tallies(levels []*outcome.Level) (out []tally) {
	for _, l := range levels {
		out = append(out, tally{l.Summary.Failed, l.Summary.Ended()})
	}
	return out
}

func (m *meter) tallies() (out []tally) {
	for i := range m.n {
		out = append(out, tally{int(math.Round(m.sum[i] / 100)), int(m.n[i])})
	}
	return out
}

func total(parts []tally) (all tally) {
	for _, t := range parts {
		all.failed, all.ended = all.failed+t.failed, all.ended+t.ended
	}
	return all
}

// testFailures compares failed requests by Fisher's exact test of all requests. If failures cluster in
// parts of a side, several of them have one cause: the test of the parts, which d already has, counts
// too.
func (d *Delta) testFailures(a, b []tally) {
	x, y := total(a), total(b)
	p := stat.FisherP(x.failed, x.ended, y.failed, y.ended)
	switch {
	case clustered(a, b) && d.P != nil:
		p = max(p, *d.P)
	case x.failed+y.failed > 0:
		d.interval(x, y)
	}
	d.P, d.NoTest = &p, ""
}

// interval adds the interval of Agresti and Caffo: as if each side had one more success and one more
// failure, because a share of 0 has an error too.
func (d *Delta) interval(x, y tally) {
	share := func(t tally) (share, variance float64) {
		n := float64(t.ended + 2)
		share = float64(t.failed+1) / n
		return share, share * (1 - share) / n
	}
	from, v := share(x)
	to, w := share(y)
	half := stat.StudentQuantile(intervalLevel, mostFreedom) * math.Sqrt(v+w)
	low, high := 100*(to-from-half), 100*(to-from+half)
	d.Low, d.High = &low, &high
}

// clustered reports whether failures vary more between the parts of a side than independent failures
// do, by the chi-squared test.
func clustered(sides ...[]tally) bool {
	squares, freedom := 0.0, 0.0
	for _, parts := range sides {
		all := total(parts)
		share := float64(all.failed) / float64(max(all.ended, 1))
		if share == 0 || share == 1 {
			continue
		}
		freedom--
		for _, t := range parts {
			if expected := share * float64(t.ended); expected > 0 {
				off := float64(t.failed) - expected
				squares += off * off / (expected * (1 - share))
				freedom++
			}
		}
	}
	if freedom <= 0 {
		return false
	}
	// Wilson and Hilferty: the cube root of chi-squared is nearly normal.
	ninth := 2 / (9 * freedom)
	z := (math.Cbrt(squares/freedom) - (1 - ninth)) / math.Sqrt(ninth)
	return z > 0 && stat.StudentP(z, mostFreedom)/2 < 0.05
}
