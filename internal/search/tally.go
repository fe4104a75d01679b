package search

import (
	"math"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

// A Tally evaluates goals over all requests of a level, without a warm-up.
type Tally struct {
	goals  []Goal
	counts []count
}

// A count sums the values of a goal.
type count struct {
	n, missed float64
	values    stat.Digest // the finite values
}

// NewTally returns an empty tally.
func NewTally(goals []Goal) *Tally { return &Tally{goals: goals, counts: make([]count, len(goals))} }

// Add takes a finished request.
func (t *Tally) Add(r *tacho.Record) {
	for i, g := range t.goals {
		c := &t.counts[i]
		g.values(r, func(v float64) {
			c.n++
			c.missed += indicator(g.misses(v))
			if !math.IsInf(v, 0) {
				c.values.Add(v)
			}
		})
	}
}

// Lost reports whether a goal will be missed whatever the other requests do, if the level
// has a number of requests.
func (t *Tally) Lost(requests int) bool {
	for i, g := range t.goals {
		perEvent := g.Metric != nil && g.Metric.PerEvent
		if !g.Mean && !perEvent && t.counts[i].missed > g.Share*float64(requests)+1 {
			return true
		}
	}
	return false
}

// Missed returns the first missed goal and its value, or false if all hold.
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

// Value returns the value of goal i: a percentile, a mean, or the share of failures.
func (t *Tally) Value(i int) float64 {
	g, c := t.goals[i], &t.counts[i]
	finite := float64(c.values.N())
	switch {
	case c.n == 0 || finite == 0:
		return g.worstValue()
	case g.Mean || g.Metric == nil:
		return c.values.Sum() / finite
	}
	at := (1 - g.Share) * (c.n - 1)
	if g.Floor { // failed requests are the lowest values, and the digest contains them
		at = g.Share * (c.n - 1)
	}
	if at > finite-1 {
		return math.Inf(1)
	}
	sample := c.values.Sample()
	return sample.Quantile(at / max(finite-1, 1))
}
