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
	"time"

	"tacho"
	"tacho/internal/spelling"
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

// errorGoal is the word for failed requests.
const errorGoal = "error"

// sayError is how a share of failures is written.
const sayError = "write it as error<0.1%"

// ParseSLO reads a list of goals, as "ttft:p99<500ms,tpot:mean<50ms,error<0.1%".
// An SLO with a mean has a limit on failures too: a request that failed has no
// latency, and would flatter the mean.
func ParseSLO(text string) ([]Goal, error) {
	var goals []Goal
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		g, err := parseGoal(part)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", part, err)
		}
		goals = append(goals, g)
	}
	if len(goals) == 0 {
		return nil, errors.New("it is empty: write limits, as in ttft:p99<500ms,tpot:p95<50ms,error<0.1%")
	}
	fails := func(g Goal) bool { return g.Metric == nil }
	if slices.ContainsFunc(goals, func(g Goal) bool { return g.Mean }) && !slices.ContainsFunc(goals, fails) {
		goals = append(goals, failures(0.01, "<", "1%"))
	}
	return goals, nil
}

func parseGoal(part string) (Goal, error) {
	at := strings.IndexAny(part, "<>")
	if at < 0 {
		return Goal{}, errors.New("it has neither < nor >: write it as ttft:p99<500ms")
	}
	what, sign, limit := strings.TrimSpace(part[:at]), part[at:at+1], strings.TrimSpace(strings.TrimPrefix(part[at+1:], "="))
	name, which, found := strings.Cut(what, ":")
	if !found {
		name, which, _ = strings.Cut(what, ".")
	}
	name = strings.ToLower(strings.TrimSpace(name))
	if name == errorGoal || name == "errors" || name == "failures" {
		share, err := ParseShare(limit)
		if err != nil || sign != "<" || which != "" {
			return Goal{}, errors.Join(err, errors.New(sayError))
		}
		return failures(share, sign, limit), nil
	}
	m := metric.Named(name)
	if m == nil {
		return Goal{}, unknownMetric(name)
	}
	g := Goal{Metric: m, Floor: sign == ">"}
	var err error
	if g.Limit, err = parseLimit(m, limit); err != nil {
		return g, err
	}
	if err := g.choose(strings.ToLower(strings.TrimSpace(which))); err != nil {
		return g, err
	}
	g.bound = sign + " " + withUnit(m, g.Limit)
	return g, nil
}

func failures(share float64, sign, limit string) Goal {
	return Goal{Share: share, words: "failed requests", bound: sign + " " + limit}
}

func unknownMetric(name string) error {
	names := []string{errorGoal}
	for _, m := range metric.All {
		names = append(names, m.Name)
	}
	if nearest := spelling.Nearest(name, names); nearest != "" {
		return fmt.Errorf("unknown metric %q, did you mean %q? (tacho metrics lists all)", name, nearest)
	}
	return fmt.Errorf("unknown metric %q (tacho metrics lists all; error is the share of failed requests)", name)
}

// choose takes the word for the mean or a percentile.
func (g *Goal) choose(which string) error {
	title := strings.ToUpper(g.Metric.Name)
	switch which {
	case "mean", "avg":
		g.Mean, g.words = true, "mean "+title
		return nil
	case "median":
		which = "p50"
	case "":
		return fmt.Errorf("of which values? write %s:p99 or %s:mean", g.Metric.Name, g.Metric.Name)
	}
	p, err := strconv.ParseFloat(strings.TrimPrefix(which, "p"), 64)
	if err != nil || !strings.HasPrefix(which, "p") || !(p > 0 && p < 100) {
		return fmt.Errorf("%q is no percentile: write mean, p50, p99 or p99.9", which)
	}
	g.words = title + " " + which
	g.Share = 1 - p/100
	if g.Floor { // the slowest are the low ones
		g.Share = p / 100
	}
	return nil
}

func parseLimit(m *metric.Metric, text string) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil && m.Unit == metric.Millis {
		var d time.Duration
		d, err = time.ParseDuration(strings.ReplaceAll(text, " ", ""))
		value = d.Seconds() * 1e3
	} else if err != nil {
		value, err = strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(text, string(m.Unit))), 64)
	}
	if err != nil || !(value > 0) || math.IsInf(value, 0) {
		return 0, fmt.Errorf("%q is no limit: write it as %s", text, withUnit(m, 50))
	}
	return value, nil
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
