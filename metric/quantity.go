package metric

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tacho/internal/spelling"
)

// A Quantity is one number of a level that has a name: a statistic of a metric,
// or a figure of the whole.
type Quantity struct {
	Name   string // ttft.p99, request_throughput
	Title  string // TTFT p99, Requests
	Unit   Unit
	Metric *Metric // nil is a figure of the whole
	P      float64 // of Metric: the percentile; 0 is the mean
	Better int     // -1: less is better; 1: more is; 0: neither
	// OfTheRun marks a figure that says how the run went, and not how the server
	// did. It holds for an INVALID level, too.
	OfTheRun bool
	of       func(*Summary) *float64
}

// The units of quantities alone.
const (
	RequestsPerSec Unit = "req/s"
	percentUnit    Unit = "%"
	// SeverityUnit is the unit of the quantity "verdict": 0 is VALID, 1 DEGRADED,
	// 2 INVALID.
	SeverityUnit Unit = "verdict"
)

// severities are the values of the quantity "verdict".
var severities = []Severity{Valid, Degraded, Invalid}

// SeverityOf is the word for a value of the quantity "verdict".
func SeverityOf(v float64) string {
	return string(severities[min(max(int(v), 0), len(severities)-1)])
}

// wholes are the quantities of a whole level, beside Figures.
var wholes = []Quantity{
	{Name: "request_throughput", Title: "Requests", Unit: RequestsPerSec, Better: 1, of: served(func(t *Throughput) *float64 { return &t.RequestsPerS })},
	{Name: "output_throughput", Title: "Output", Unit: TokensPerSec, Better: 1, of: served(func(t *Throughput) *float64 { return &t.OutputTokensPerS })},
	{Name: "total_token_throughput", Title: "Total", Unit: TokensPerSec, Better: 1, of: served(func(t *Throughput) *float64 { return &t.TotalTokensPerS })},
	{Name: "request_goodput", Title: "Goodput", Unit: RequestsPerSec, Better: 1, of: served(func(t *Throughput) *float64 { return t.GoodPerS })},
	{Name: "failures", Title: "Failed", Unit: percentUnit, Better: -1, of: func(s *Summary) *float64 {
		share, ok := ratio(s.Failed, s.Ended())
		if !ok {
			return nil
		}
		share *= 100
		return &share
	}},
	{Name: "unsent", Title: "Unsent", Unit: percentUnit, Better: -1, OfTheRun: true, of: func(s *Summary) *float64 {
		share, ok := s.unsentShare()
		if !ok {
			return nil
		}
		share *= 100
		return &share
	}},
	{Name: "verdict", Title: "Verdict", Unit: SeverityUnit, Better: -1, OfTheRun: true, of: func(s *Summary) *float64 {
		i := slices.Index(severities, s.Verdict.Severity)
		if i < 0 {
			return nil // nobody measured it, or somebody else did
		}
		v := float64(i)
		return &v
	}},
}

// unsentShare is the part of the sessions due before the end of the level that never
// began; false if there were none.
func (s *Summary) unsentShare() (float64, bool) {
	return ratio(s.Config.Unsent, s.Config.Unsent+s.Requests)
}

func served(of func(*Throughput) *float64) func(*Summary) *float64 {
	return func(s *Summary) *float64 {
		if s.Throughput == nil {
			return nil
		}
		return of(s.Throughput)
	}
}

// Of is the number in a summary; false where the summary does not tell it.
func (q *Quantity) Of(s *Summary) (float64, bool) {
	if q.Metric == nil {
		if v := q.of(s); v != nil {
			return *v, true
		}
		return 0, false
	}
	stats := s.Dist(q.Metric).Stats
	if stats == nil {
		return 0, false
	}
	if q.P == 0 {
		return stats.Mean, !math.IsNaN(stats.Mean)
	}
	i := slices.IndexFunc(stats.Percentiles, func(p Percentile) bool { return p.P == q.P })
	if i < 0 {
		return 0, false
	}
	return stats.Percentiles[i].Value, true
}

// ParseQuantity reads the name of a quantity, as ttft.p99, tpot.mean, itl:p50,
// request_throughput or failures.
func ParseQuantity(text string) (Quantity, error) {
	name, which, statistic := strings.Cut(strings.ToLower(strings.TrimSpace(text)), ".")
	if before, after, colon := strings.Cut(name, ":"); colon { // as SLOs have it
		name, which, statistic = before, strings.TrimSuffix(after+"."+which, "."), true
	}
	m := Named(name)
	if m == nil {
		q, found := wholeNamed(name)
		if !found {
			meant := cmp.Or(spelling.Meant(name, slices.Concat(names(All), wholeNames())), ":")
			return q, fmt.Errorf("%q is no quantity%s write the name of a metric and a statistic, as ttft.p99 or tpot.mean, or one of %s (tacho metrics lists all)", text, meant, strings.Join(wholeNames(), ", "))
		}
		if statistic {
			return q, fmt.Errorf("%s is one number for a level: write it without .%s", name, which)
		}
		return q, nil
	}
	q := Quantity{Metric: m, Unit: m.Unit, Better: direction(m.Unit)}
	if which == "median" {
		which = "p50"
	}
	switch p, err := strconv.ParseFloat(strings.TrimPrefix(which, "p"), 64); {
	case which == "mean" || which == "avg":
		which = "mean"
	case err == nil && strings.HasPrefix(which, "p") && p > 0 && p < 100:
		q.P = p
	case !statistic:
		return q, fmt.Errorf("%s of which values? write %s.mean or %s.p99", name, name, name)
	default:
		return q, fmt.Errorf("%q is no statistic: write mean, p50, p99 or p99.9", which)
	}
	q.Name, q.Title = name+"."+which, strings.ToUpper(name)+" "+which
	return q, nil
}

func direction(u Unit) int {
	switch u {
	case Millis, PerMillion, Joules:
		return -1
	case TokensPerSec:
		return 1
	}
	return 0
}

func wholeNamed(name string) (Quantity, bool) {
	switch name {
	case "error", "errors", "failed":
		name = "failures"
	case "missing":
		name = "unsent"
	}
	for _, q := range wholes {
		if q.Name == name {
			return q, true
		}
	}
	for _, f := range Figures {
		if f.Name == name {
			q := Quantity{Name: f.Name, Title: f.Title, Unit: f.Unit, Better: direction(f.Unit), of: f.Of}
			if name == "stalled_share" {
				q.Better = -1
			}
			return q, true
		}
	}
	return Quantity{}, false
}

func wholeNames() []string {
	var names []string
	for _, q := range wholes {
		names = append(names, q.Name)
	}
	return names
}

// A Condition is something that may be true of a level: ttft.p99>200ms. A
// relative one is of how much more it is than in another level: ttft.p99>+10%.
type Condition struct {
	Quantity
	Above    bool    // it holds above Limit, else below
	Limit    float64 // in the unit of the quantity, or as a part of the other's where Relative
	Relative bool
	Text     string // as it was written
}

// ParseConditions reads a list of conditions: "ttft.p99>200ms,failures>1%". It is
// the one reader of --fail-if and --slo.
func ParseConditions(text string) ([]Condition, error) {
	var out []Condition
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		c, err := parseCondition(part)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", part, err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("it is empty: write limits, as ttft:p99<500ms,error<1%")
	}
	return out, nil
}

func parseCondition(part string) (Condition, error) {
	at := strings.IndexAny(part, "<>")
	if at < 0 {
		return Condition{}, errors.New("it has neither < nor >: write one of them and a limit behind it, as 200ms")
	}
	q, err := ParseQuantity(part[:at])
	if err != nil {
		return Condition{}, err
	}
	c := Condition{Quantity: q, Above: part[at] == '>', Text: part}
	limit := strings.TrimSpace(strings.TrimPrefix(part[at+1:], "="))
	number, percent := strings.CutSuffix(limit, "%")
	if percent && strings.HasPrefix(number, "+") || percent && strings.HasPrefix(number, "-") {
		c.Relative = true
		c.Limit, err = strconv.ParseFloat(number, 64)
		c.Limit /= 100
	} else {
		c.Limit, err = parseAmount(q.Unit, limit)
	}
	if err != nil && q.Unit == SeverityUnit {
		return c, fmt.Errorf("%q is no verdict: write verdict>valid or verdict>degraded", limit)
	}
	if err != nil || math.IsNaN(c.Limit) || math.IsInf(c.Limit, 0) {
		return c, fmt.Errorf("%q is no limit of %s: write a number in %s, as 5%s, or a difference as +10%%", limit, q.Name, q.Unit, q.Unit)
	}
	return c, nil
}

// parseAmount reads a number with or without its unit. Times may be in any; what
// is in percent may be a part of 1, too.
func parseAmount(u Unit, text string) (float64, error) {
	if u == SeverityUnit {
		i := slices.Index(severities, Severity(strings.ToUpper(text)))
		if i < 0 {
			return 0, errors.New("no verdict")
		}
		return float64(i), nil
	}
	number, unit := strings.CutSuffix(text, string(u))
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err == nil && u == percentUnit && !unit:
		if v < 0 || v >= 1 {
			return 0, errors.New("neither percent nor a part of 1")
		}
		return 100 * v, nil
	case err == nil || u != Millis:
		return v, err
	}
	d, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
	return float64(d) / 1e6, err
}

// Holds says whether it is true of a value.
func (c *Condition) Holds(v float64) bool {
	if c.Above {
		return v > c.Limit
	}
	return v < c.Limit
}
