package search

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
)

// A Goal is one condition of the SLO: on a percentile or the mean of a metric, or on
// the share of failed requests.
type Goal struct {
	Metric *metric.Metric // nil for a goal on failed requests
	Mean   bool           // the condition is on the mean, not on a percentile
	Limit  float64        // in the metric's unit
	Floor  bool           // values below Limit miss the goal; otherwise values above it do
	Share  float64        // allowed miss ratio, or allowed share of failed requests
	Good   []metric.SLO   // limits of each request for a goal on goodput; a failed request misses them
	words  string         // "TTFT p99"
	bound  string         // "< 500 ms"
}

// maxLimit is the highest limit of a goal in the metric's unit: in milliseconds, an hour.
const maxLimit = 3_600_000

// impliedFailures is the goal on failures if an SLO contains a mean and no goal on failures.
const impliedFailures = 0.01

// ParseSLO parses a list of goals, such as "ttft:p99<500ms,tpot:mean<50ms,error<0.1%".
// An SLO with a mean always gets a goal on failures, because a failed request has no
// latency and would flatter the mean. A goal on goodput needs limits of each request.
func ParseSLO(text string, limits ...metric.SLO) ([]Goal, error) {
	conditions, err := metric.ParseSLO(text)
	if err != nil {
		return nil, err
	}
	var goals []Goal
	for _, c := range conditions {
		g, err := goalOf(c, limits)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", c.Text, err)
		}
		goals = append(goals, g)
	}
	fails := func(g Goal) bool { return g.Metric == nil && g.Good == nil }
	if slices.ContainsFunc(goals, func(g Goal) bool { return g.Mean }) && !slices.ContainsFunc(goals, fails) {
		goals = append(goals, failures(impliedFailures))
	}
	return goals, nil
}

// goalOf converts a condition to a goal.
func goalOf(c metric.Condition, limits []metric.SLO) (Goal, error) {
	switch {
	case c.Limit > maxLimit:
		return Goal{}, fmt.Errorf("its limit must be at most %g, because a search needs a load that misses it", float64(maxLimit))
	case c.Name == metric.FailureShare:
		return failures(c.Limit / 100), nil
	case c.Name == metric.GoodputShare && len(limits) == 0:
		return Goal{}, errors.New("goodput is the share of requests within all limits of --goodput: add them, as --goodput ttft:500ms,tpot:50ms")
	case c.Name == metric.GoodputShare:
		return Goal{Share: 1 - c.Limit/100, Good: limits, words: "goodput", bound: "> " + strconv.FormatFloat(c.Limit, 'g', 6, 64) + "%"}, nil
	case c.OfLevel():
		return Goal{}, fmt.Errorf("a search needs requests that miss a goal: use %s with bench --slo or --fail-if", c.Name)
	}
	g := Goal{Metric: c.Metric, Limit: c.Limit, Floor: c.Above, words: c.Title, bound: "< " + withUnit(c.Metric, c.Limit)}
	if c.Above {
		g.bound = "> " + withUnit(c.Metric, c.Limit)
	}
	switch {
	case c.P == 0:
		g.Mean, g.words = true, "mean "+strings.ToUpper(c.Metric.Name)
	case g.Floor: // low values are the slow ones
		g.Share = c.P / 100
	default:
		g.Share = 1 - c.P/100
	}
	return g, nil
}

func failures(share float64) Goal {
	return Goal{Share: share, words: "failed requests", bound: "< " + strconv.FormatFloat(100*share, 'g', 6, 64) + "%"}
}

// ParseShare parses a share, such as 0.1% or 0.001.
func ParseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share > 0 && share < 1) {
		return 0, fmt.Errorf("%q is not a number between 0 and 1", text)
	}
	return share, nil
}

// String returns the goal with its limit: "TTFT p99 < 500 ms".
func (g Goal) String() string { return g.words + " " + g.bound }

// Words returns the goal without its limit: "TTFT p99".
func (g Goal) Words() string { return g.words }

// reportsShare reports whether a probe shows the miss ratio
// instead of a percentile, because a request has many values or only fails.
func (g Goal) reportsShare() bool { return g.Metric == nil || g.Metric.PerEvent && !g.Mean }

// PerRequest returns the limit of the goal as a limit on each request. ok is false if
// the goal has no such limit.
func (g Goal) PerRequest() (slo metric.SLO, ok bool) {
	if g.Metric == nil || g.Metric.Unit != metric.Millis || g.Metric.PerEvent || g.Floor || g.Mean {
		return slo, false
	}
	return metric.SLO{Metric: g.Metric.Name, LimitMillis: g.Limit}, true
}

// values calls emit for each value of a record. A failed request is infinitely slow. It
// has one value, or one for each gap between its requested tokens.
func (g Goal) values(r *tacho.Record, emit func(float64)) {
	switch {
	case g.Metric == nil:
		emit(indicator(!r.OK() || slices.ContainsFunc(g.Good, func(l metric.SLO) bool { return !l.KeptBy(r) })))
	case r.OK():
		g.Metric.Of(r, emit)
	case g.Mean: // the goal on failures counts it
	case g.Metric.PerEvent:
		for range max(r.Asked-1, 1) {
			emit(g.worstValue())
		}
	default:
		emit(g.worstValue())
	}
}

// indicator returns 1 for true and 0 for false.
func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// worstValue returns the value of a failed request.
func (g Goal) worstValue() float64 {
	if g.Floor {
		return 0
	}
	return math.Inf(1)
}

// misses reports whether a value misses the goal.
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
