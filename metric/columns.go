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
func (a *Accumulator) note(r *tacho.Record, skip int) {
	if a.columns == nil {
		a.columns = make([]column, len(All))
	}
	at := momentOf(r)
	for i := classicCount; i < len(a.metrics); i++ {
		if i == skip {
			continue
		}
		to := &a.columns[i]
		had := len(to.x)
		for to.x = a.witness.values(a.metrics[i], r, to.x); len(to.at) < len(to.x); {
			to.at = append(to.at, at)
		}
		if i == stallsAt && len(to.x) > had && to.x[had] > 0 {
			a.stalled++
		}
		if len(to.x) >= longColumn {
			to.settle(&a.tally, &a.whole.digests[i], &a.series[i])
		}
	}
}

// A tally is values, and how often each was seen.
type tally struct {
	x     []float64
	times []int
}

func (t *tally) add(x float64, n int) { t.x, t.times = append(t.x, x), append(t.times, n) }

func (t *tally) empty() { t.x, t.times = t.x[:0], t.times[:0] }

// settle takes the values of a column in. Those that are not finite nobody wants.
func (c *column) settle(t *tally, d *stat.Digest, s *stat.Series) {
	t.empty()
	begin := time.Duration(-1)
	flush := func() {
		d.AddTimes(t.x, t.times)
		if len(t.x) > 0 {
			s.AddTimes(begin, t.x, t.times)
		}
		t.empty()
	}
	for i := 0; i < len(c.x); {
		if b := s.Begin(c.at[i]); b != begin {
			flush()
			begin = b
		}
		k := i + 1
		for k < len(c.x) && c.x[k] == c.x[i] && s.Begin(c.at[k]) == begin {
			k++
		}
		if x := c.x[i]; x-x == 0 {
			t.add(x, k-i)
		}
		i = k
	}
	flush()
	c.x, c.at = c.x[:0], c.at[:0]
}

// settle puts all values where they belong that still wait.
func (a *Accumulator) settle() {
	for i := range a.columns {
		a.columns[i].settle(&a.tally, &a.whole.digests[i], &a.series[i])
	}
}
