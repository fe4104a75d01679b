package search

import (
	"math"

	"tacho"
	"tacho/stat"
)

// A Tally holds goals against all requests of a level, from the first to the last.
type Tally struct {
	goals  []Goal
	counts []count
}

// A count is what requests say of a goal.
type count struct {
	n, missed float64
	values    stat.Digest // those that are finite
}

// NewTally returns a tally of nothing.
func NewTally(goals []Goal) *Tally { return &Tally{goals: goals, counts: make([]count, len(goals))} }

// Add takes a request in.
func (t *Tally) Add(r *tacho.Record) {
	for i, g := range t.goals {
		c := &t.counts[i]
		g.of(r, func(v float64) {
			c.n++
			c.missed += failed(g.misses(v))
			if !math.IsInf(v, 0) {
				c.values.Add(v)
			}
		})
	}
}

// Lost says whether a goal will be missed whatever comes, if so many requests are
// to come in all.
func (t *Tally) Lost(requests int) bool {
	for i, g := range t.goals {
		perEvent := g.Metric != nil && g.Metric.PerEvent
		if !g.Mean && !perEvent && t.counts[i].missed > g.Share*float64(requests)+1 {
			return true
		}
	}
	return false
}

// Missed is the first goal that does not hold, with its value; false: all hold.
func (t *Tally) Missed() (g Goal, value float64, missed bool) {
	for i, g := range t.goals {
		c := &t.counts[i]
		value := t.Value(i)
		beyond := c.missed > g.Share*c.n+1e-6 // a share such as 0.1 is not exact
		if g.Mean {
			beyond = g.misses(value)
		}
		if c.n == 0 || beyond {
			return g, value, true
		}
	}
	return Goal{}, 0, false
}

// Value is what goal i came to: a percentile, a mean, or the share of failures.
func (t *Tally) Value(i int) float64 {
	g, c := t.goals[i], &t.counts[i]
	finite := float64(c.values.N())
	switch {
	case c.n == 0 || finite == 0:
		return g.worst()
	case g.Mean || g.Metric == nil:
		return c.values.Sum() / finite
	}
	at := (1 - g.Share) * (c.n - 1)
	if g.Floor { // what failed is the lowest there is, and is among the values
		at = g.Share * (c.n - 1)
	}
	if at > finite-1 {
		return math.Inf(1)
	}
	sample := c.values.Sample()
	return sample.Quantile(at / max(finite-1, 1))
}

// Fewest looks for the smallest number at which a goal holds, where it holds at
// all that are larger: by doubling, then by halves.
type Fewest struct {
	Most  int // that may be tried; 0 is no end
	low   int // the largest that does not hold; 0 is none
	high  int // the smallest that holds; 0 is none
	first int
}

// NewFewest begins its search at a number.
func NewFewest(first, most int) *Fewest { return &Fewest{first: max(first, 1), Most: most} }

// Next is the next number to try; false: it is known.
func (f *Fewest) Next() (int, bool) {
	switch {
	case f.high == 0 && f.low == 0:
		return f.first, true
	case f.high == 0:
		n := 2 * f.low
		if f.Most > 0 {
			n = min(n, f.Most)
		}
		return n, n > f.low
	case f.high-f.low <= 1:
		return 0, false
	case f.low == 0:
		return (f.high + 1) / 2, true
	}
	return (f.low + f.high) / 2, true
}

// Add takes in whether it holds at n.
func (f *Fewest) Add(n int, holds bool) {
	if holds {
		f.high = n
	} else {
		f.low = n
	}
}

// Found is the smallest number that holds; 0: none of those that may be tried.
func (f *Fewest) Found() int { return f.high }
