package metric

import (
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

// A column buffers values of one metric, with their times, before they go into the digest. There are
// thirty metrics besides the classic ones, and most have one value per record. Adding many values of
// one metric is much cheaper than adding one value of many metrics, and consecutive values are often
// equal.
type column struct {
	x  []float64
	at []time.Duration
}

// longColumn is the number of values in a full buffer.
const longColumn = 256

// addToColumns buffers the values of a record, for all metrics except the classic ones and the metric
// at index skip.
func (a *Accumulator) addToColumns(r *tacho.Record, skip int) {
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
		for to.x = a.collector.values(a.metrics[i], r, to.x); len(to.at) < len(to.x); {
			to.at = append(to.at, at)
		}
		if i == stallsAt && len(to.x) > had && to.x[had] > 0 {
			a.stalled++
		}
		if len(to.x) >= longColumn {
			to.flush(&a.tally, &a.whole.digests[i], &a.series[i])
		}
	}
}

// A tally counts how often each value occurred.
type tally struct {
	x     []float64
	times []int
}

func (t *tally) add(x float64, n int) { t.x, t.times = append(t.x, x), append(t.times, n) }

func (t *tally) empty() { t.x, t.times = t.x[:0], t.times[:0] }

// flush adds the buffered values to the digest and the series. Values that are not finite are dropped.
func (c *column) flush(t *tally, d *stat.Digest, s *stat.Series) {
	t.empty()
	begin := time.Duration(-1)
	emit := func() {
		d.AddTimes(t.x, t.times)
		if len(t.x) > 0 {
			s.AddTimes(begin, t.x, t.times)
		}
		t.empty()
	}
	for i := 0; i < len(c.x); {
		if b := s.Begin(c.at[i]); b != begin {
			emit()
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
	emit()
	c.x, c.at = c.x[:0], c.at[:0]
}

// flush adds all buffered values to their digests and series.
func (a *Accumulator) flush() {
	for i := range a.columns {
		a.columns[i].flush(&a.tally, &a.whole.digests[i], &a.series[i])
	}
}
