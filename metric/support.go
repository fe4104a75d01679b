package metric

import (
	"fmt"
	"math"

	"github.com/tacho-bench/tacho/stat"
)

// A figure can be judged only if the level supports it. Unusable and TooFew are the rule, for all gates:
// of one run and of several, with limits and with differences.

// Unusable returns why the verdict on a level rules out a quantity, or "".
func (q *Quantity) Unusable(s *Summary) string {
	name := q.Name
	if q.Metric != nil {
		name = q.Metric.Name
	}
	switch {
	case q.OfTheRun || s.Verdict.Of(name) != Invalid:
		return ""
	case s.Verdict.Severity == Invalid:
		return "the level is INVALID"
	}
	for i := range s.Verdict.Reasons {
		if r := &s.Verdict.Reasons[i]; r.Unusable && r.doubts(name) {
			return fmt.Sprintf("%s is INVALID (%s)", name, r.Text)
		}
	}
	return name + " is INVALID"
}

const (
	// fewestRequests is the smallest number of requests with a mean, a median or a rate. Fewer requests
	// show a cold start or a single delay.
	fewestRequests = 10
	// failuresAlpha is the accepted share of wrong conclusions from the failures of a few requests.
	failuresAlpha = 0.05
)

// Needs returns the number of requests, or of values of a metric, that a condition needs. A percentile
// needs one value beyond it, otherwise it is the largest value. A limit for a share needs as many
// requests that one of them is not more than the limit.
func (c *Condition) Needs() int {
	beyond := func(share float64) int { return int(math.Ceil(1/share - 1e-9)) }
	switch {
	case c.OfTheRun:
		return 0
	case c.Name == FailureShare && !c.Relative:
		if c.Limit <= 0 {
			return 1
		}
		return beyond(c.Limit / 100)
	case c.P > 0:
		return max(beyond(min(c.P, 100-c.P)/100), fewestRequests)
	}
	return fewestRequests
}

// HasMedian reports whether a level has enough requests for a median.
func (s *Summary) HasMedian() bool { return s.Completed >= fewestRequests }

// TooFew returns why a level has too few requests for a condition, or "".
func (c *Condition) TooFew(s *Summary) string {
	need := c.Needs()
	few := func(what string, has, need int) string {
		return fmt.Sprintf("%s needs %d %s, the level has %d", c.Name, need, what, has)
	}
	switch {
	case c.Metric == nil && s.Ended() < need:
		return few("requests", s.Ended(), need)
	case c.Metric != nil && s.Completed < fewestRequests:
		return few("requests", s.Completed, max(need, fewestRequests))
	case c.Metric != nil && s.Dist(c.Metric).N < need:
		return few("values", s.Dist(c.Metric).N, need)
	}
	return ""
}

// Certain reports whether a level with too few requests is beyond a limit nevertheless: half of the
// values are beyond the limit of a percentile that one value in a hundred may exceed, or more requests
// failed than random variation explains.
func (c *Condition) Certain(s *Summary) bool {
	switch {
	case c.Relative || !c.Above:
		return false
	case c.Name == FailureShare:
		return 1-stat.BinomialCDF(float64(s.Failed-1), float64(s.Ended()), c.Limit/100) <= failuresAlpha
	case c.P < 50 || s.Completed < fewestRequests:
		return false
	}
	stats := s.Dist(c.Metric).Stats
	return stats != nil && c.Holds(stats.Median)
}
