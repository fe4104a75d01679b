package metric

import (
	"time"

	"tacho"
	"tacho/stat"
)

// A column is values of one metric, with their times, that are not in its digest yet.
// There are thirty metrics beside the classic ones, of most of which a record has one
// value: to take in many values of one is far cheaper than one of many, and those
// that follow each other are often equal.
type column struct {
	x  []float64
	at []time.Duration
}

// longColumn is how many values wait.
const longColumn = 256

// note takes in the values of a record of all metrics but the classic ones and that
// at skip.
func (a *Accumulator) note(r *tacho.Record, alone, skip int) {
	if a.columns == nil {
		a.columns = make([]column, len(All))
	}
	at := momentOf(r)
	var to *column
	keep := func(x float64) { to.x, to.at = append(to.x, x), append(to.at, at) } // one for all, as each is garbage
	for i := classicCount; i < len(a.metrics); i++ {
		m := a.metrics[i]
		to = &a.columns[i]
		had := len(to.x)
		switch {
		case i == skip:
		case m.gaps != nil:
			for to.x = m.gaps(r, alone, to.x); len(to.at) < len(to.x); {
				to.at = append(to.at, at)
			}
		default:
			m.Of(r, keep)
		}
		if i == stallsAt && len(to.x) > had && to.x[had] > 0 {
			a.stalled++
		}
		if len(to.x) >= longColumn {
			to.settle(&a.whole.digests[i], &a.series[i])
		}
	}
}

// settle takes the values of a column in.
func (c *column) settle(d *stat.Digest, s *stat.Series) {
	for i, k := 0, 0; i < len(c.x); i = k {
		for k = i + 1; k < len(c.x) && c.x[k] == c.x[i]; k++ {
		}
		d.AddTimes(c.x[i], k-i)
	}
	for i, k := 0, 0; i < len(c.x); i = k {
		begin := s.Begin(c.at[i])
		for k = i + 1; k < len(c.x) && c.x[k] == c.x[i] && s.Begin(c.at[k]) == begin; k++ {
		}
		s.AddTimes(begin, c.x[i], k-i)
	}
	c.x, c.at = c.x[:0], c.at[:0]
}

// settle puts all values where they belong that still wait.
func (a *Accumulator) settle() {
	for i := range a.columns {
		a.columns[i].settle(&a.whole.digests[i], &a.series[i])
	}
	for _, both := range a.shared {
		for i := range both {
			a.settleSteps(&both[i])
		}
	}
}
