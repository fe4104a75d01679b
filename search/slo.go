// Package search says at which load to measure next, by what was seen so far: to
// draw a curve (sweep.go), or to find the highest load that keeps an SLO. It is
// arithmetic. Whoever drives it runs what it asks for; it measures nothing, reads
// no clock and prints nothing, so that a search runs the same in virtual time.
//
// An SLO is a list of goals (slo.go). A Watch judges one probe while it runs
// (watch.go) by what its requests are worth (evidence.go), a Search chooses the
// next load (search.go) by all that was seen (fit.go), and a Limit says what came
// of it (limit.go).
package search

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tacho"
	"tacho/metric"
)

// A Goal is one thing that must hold: a percentile or the mean of a metric, or
// the share of requests that fail.
type Goal struct {
	Metric *metric.Metric // nil is failed requests
	Mean   bool           // the mean is what counts, and not a share of the values
	Limit  float64        // in the metric's unit
	Floor  bool           // Limit is the least there may be, and not the most
	Share  float64        // of the values so many may be beyond Limit; of failed requests, of all
	words  string         // "TTFT p99"
	bound  string         // "< 500 ms"
}

// ParseSLO reads a list of goals, as "ttft:p99<500ms,tpot:mean<50ms,error<0.1%".
// An SLO with a mean has a limit on failures too: a request that failed has no
// latency, and would flatter the mean.
func ParseSLO(text string) ([]Goal, error) {
	conditions, err := metric.ParseConditions(text)
	if err != nil {
		return nil, err
	}
	var goals []Goal
	for _, c := range conditions {
		g, err := goalOf(c)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", c.Text, err)
		}
		goals = append(goals, g)
	}
	fails := func(g Goal) bool { return g.Metric == nil }
	if slices.ContainsFunc(goals, func(g Goal) bool { return g.Mean }) && !slices.ContainsFunc(goals, fails) {
		goals = append(goals, failures(0.01))
	}
	return goals, nil
}

// goalOf is a condition as something that must hold of a load.
func goalOf(c metric.Condition) (Goal, error) {
	switch {
	case c.Relative:
		return Goal{}, errors.New("a goal has a limit of its own, and none that is relative to another run: write it as ttft:p99<500ms")
	case !(c.Limit > 0):
		return Goal{}, errors.New("its limit must be above 0")
	case c.Name == "failures":
		if c.Above || c.Limit >= 100 {
			return Goal{}, errors.New("write it as error<0.1%")
		}
		return failures(c.Limit / 100), nil
	case c.Metric == nil:
		return Goal{}, fmt.Errorf("%s is one number for a level, and no request keeps or misses it: write limits on metrics, as ttft:p99<500ms, and error<0.1%%", c.Name)
	case c.Above && c.Better < 0:
		return Goal{}, errors.New("less is better there: write < in place of >")
	case !c.Above && c.Better > 0:
		return Goal{}, errors.New("more is better there: write > in place of <")
	}
	g := Goal{Metric: c.Metric, Limit: c.Limit, Floor: c.Above, words: c.Title, bound: "< " + withUnit(c.Metric, c.Limit)}
	if c.Above {
		g.bound = "> " + withUnit(c.Metric, c.Limit)
	}
	switch {
	case c.P == 0:
		g.Mean, g.words = true, "mean "+strings.ToUpper(c.Metric.Name)
	case g.Floor: // the slowest are the low ones
		g.Share = c.P / 100
	default:
		g.Share = 1 - c.P/100
	}
	return g, nil
}

func failures(share float64) Goal {
	return Goal{Share: share, words: "failed requests", bound: "< " + strconv.FormatFloat(100*share, 'g', 6, 64) + "%"}
}

// ParseShare reads 0.1% or 0.001.
func ParseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share > 0 && share < 1) {
		return 0, fmt.Errorf("%q is no share between 0 and 1", text)
	}
	return share, nil
}

// String is the goal in words: "TTFT p99 < 500 ms".
func (g Goal) String() string { return g.words + " " + g.bound }

// Words is the goal without its limit: "TTFT p99".
func (g Goal) Words() string { return g.words }

// counted says whether a probe reports the share of values that miss the goal,
// because the goal has no single value for a request.
func (g Goal) counted() bool { return g.Metric == nil || g.Metric.PerEvent && !g.Mean }

// PerRequest is the limit as one that each request may keep or miss, where
// there is such a thing.
func (g Goal) PerRequest() (slo metric.SLO, ok bool) {
	if g.Metric == nil || g.Metric.Unit != metric.Millis || g.Metric.PerEvent || g.Floor || g.Mean {
		return slo, false
	}
	return metric.SLO{Metric: g.Metric.Name, LimitMillis: g.Limit}, true
}

// of calls emit for each value of a record. A request that failed is infinitely
// slow: it counts once, or once for each gap between the tokens it was to have.
func (g Goal) of(r *tacho.Record, emit func(float64)) {
	switch {
	case g.Metric == nil:
		emit(failed(!r.OK()))
	case r.OK():
		g.Metric.Of(r, emit)
	case g.Mean: // it has none; the limit on failures sees it
	case g.Metric.PerEvent:
		for range max(r.Asked-1, 1) {
			emit(g.worst())
		}
	default:
		emit(g.worst())
	}
}

func failed(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (g Goal) worst() float64 {
	if g.Floor {
		return 0
	}
	return math.Inf(1)
}

// misses says whether a value is beyond the limit.
func (g Goal) misses(v float64) bool {
	if g.Metric == nil {
		return v > 0
	}
	if g.Floor {
		return v < g.Limit
	}
	return v > g.Limit
}

func withUnit(m *metric.Metric, v float64) string {
	return strconv.FormatFloat(v, 'g', -1, 64) + " " + string(m.Unit)
}
