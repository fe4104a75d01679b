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

	"github.com/tacho-bench/tacho/internal/spelling"
)

// A Quantity is one named number of a level: a statistic of a metric, or a figure of the level.
type Quantity struct {
	Name   string // ttft.p99, request_throughput
	Title  string // TTFT p99, Requests
	Unit   Unit
	Metric *Metric // nil for a figure of the level
	P      float64 // percentile of Metric; 0 means the mean
	Better int     // -1: less is better; 1: more is better; 0: neither
	// OfTheRun marks a figure that describes the run, not the server. It is meaningful for an INVALID
	// level too.
	OfTheRun bool
	of       func(*Summary) *float64
}

// FailureShare is the name of the quantity that counts failed requests.
const FailureShare = "failures"

// GoodputShare is the name of the quantity that counts the requests within all limits of Config.Goodput.
const GoodputShare = "goodput"

// Names of the quantities about pauses of servers.
const (
	pausesQuantity       = "pauses"
	longestPauseQuantity = "longest_pause"
)

// Units used by quantities only.
const (
	RequestsPerSec Unit = "req/s"
	percentUnit    Unit = "%"
	// SeverityUnit is the unit of the quantity "verdict": 0 is VALID, 1 DEGRADED, 2 INVALID.
	SeverityUnit Unit = "verdict"
)

// severities are the values of the quantity "verdict".
var severities = []Severity{Valid, Degraded, Invalid}

// SeverityOf returns the word for a value of the quantity "verdict".
func SeverityOf(v float64) string {
	return string(severities[min(max(int(v), 0), len(severities)-1)])
}

// levelQuantities are the quantities of a whole level, besides Figures.
var levelQuantities = slices.Concat([]Quantity{
	{Name: "request_throughput", Title: "Requests", Unit: RequestsPerSec, Better: 1, of: served(func(t *Throughput) *float64 { return &t.RequestsPerS })},
	{Name: "output_throughput", Title: "Output", Unit: TokensPerSec, Better: 1, of: served(func(t *Throughput) *float64 { return &t.OutputTokensPerS })},
	{Name: "total_token_throughput", Title: "Total", Unit: TokensPerSec, Better: 1, of: served(func(t *Throughput) *float64 { return &t.TotalTokensPerS })},
	{Name: goodputQuantity, Title: "Goodput", Unit: RequestsPerSec, Better: 1, of: served(func(t *Throughput) *float64 { return t.GoodPerS })},
	{Name: FailureShare, Title: "Failed", Unit: percentUnit, Better: -1, of: func(s *Summary) *float64 {
		share, ok := ratio(s.Failed, s.Ended())
		if !ok {
			return nil
		}
		share *= 100
		return &share
	}},
	{Name: GoodputShare, Title: "Goodput share", Unit: percentUnit, Better: 1, of: func(s *Summary) *float64 {
		if s.Throughput == nil || s.Throughput.GoodPerS == nil || s.Ended() == 0 {
			return nil
		}
		share := 100 * *s.Throughput.GoodPerS * s.DurationS / float64(s.Ended())
		return &share
	}},
	{Name: "unsent", Title: "Unsent", Unit: percentUnit, Better: -1, OfTheRun: true, of: func(s *Summary) *float64 {
		share, ok := s.Unsent().share()
		if !ok {
			return nil
		}
		share *= 100
		return &share
	}},
	{Name: "not_received", Title: "Not received", Unit: percentUnit, Better: -1, OfTheRun: true, of: func(s *Summary) *float64 {
		n := s.Config.NotReceived()
		share, ok := ratio(n, n+s.Requests)
		if !ok {
			return nil
		}
		share *= 100
		return &share
	}},
	{Name: pausesQuantity, Title: "Pauses", Better: -1, of: func(s *Summary) *float64 {
		return s.ofPauses(func(p *ServerPauses) float64 { return float64(p.Pauses) })
	}},
	{Name: longestPauseQuantity, Title: "Longest pause", Unit: Millis, Better: -1, of: func(s *Summary) *float64 {
		return s.ofPauses(func(p *ServerPauses) float64 { return p.LongestMillis })
	}},
	{Name: "verdict", Title: "Verdict", Unit: SeverityUnit, Better: -1, OfTheRun: true, of: func(s *Summary) *float64 {
		i := slices.Index(severities, s.Verdict.Severity)
		if i < 0 {
			return nil // predicted, or measured by another tool
		}
		v := float64(i)
		return &v
	}},
}, answerQuantities)

func served(of func(*Throughput) *float64) func(*Summary) *float64 {
	return func(s *Summary) *float64 {
		if s.Throughput == nil {
			return nil
		}
		return of(s.Throughput)
	}
}

// ofPauses returns a number of the pauses of a level, which is 0 without a pause, or nil if no token arrived.
func (s *Summary) ofPauses(of func(*ServerPauses) float64) *float64 {
	if s.Events == 0 {
		return nil
	}
	v := 0.0
	if s.Pauses != nil {
		v = of(s.Pauses)
	}
	return &v
}

// Of returns the number in a summary, or false if the summary does not contain it.
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

// ParseQuantity parses the name of a quantity, such as ttft.p99, tpot.mean, itl:p50, request_throughput
// or failures.
func ParseQuantity(text string) (Quantity, error) {
	name, which, statistic := strings.Cut(strings.ToLower(strings.TrimSpace(text)), ".")
	if before, after, colon := strings.Cut(name, ":"); colon { // the syntax of SLOs
		name, which, statistic = before, strings.TrimSuffix(after+"."+which, "."), true
	}
	name = ownName(name)
	m := Named(name)
	if m == nil {
		q, found := levelQuantity(name)
		if !found {
			meant := cmp.Or(spelling.DidYouMean(name, slices.Concat(names(All), levelNames())), ":")
			return q, fmt.Errorf("%q is not a known metric%s use a metric and a statistic, such as ttft.p99 or tpot.mean, or one of %s (tacho metrics lists all)", text, meant, strings.Join(levelNames(), ", "))
		}
		if statistic {
			return q, fmt.Errorf("%s is a single number per level: remove .%s", name, which)
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
		return q, fmt.Errorf("%s needs a statistic: use %s.mean or %s.p99", name, name, name)
	default:
		return q, fmt.Errorf("%q is not a known statistic: use mean, p50, p99 or p99.9", which)
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

// otherLevelNames are other names of quantities of a level.
var otherLevelNames = map[string]string{"error": FailureShare, "errors": FailureShare, "failed": FailureShare, "missing": "unsent"}

func levelQuantity(name string) (Quantity, bool) {
	name = cmp.Or(otherLevelNames[name], name)
	for _, q := range levelQuantities {
		if q.Name == name {
			return q, true
		}
	}
	for _, f := range Figures {
		if f.Name == name {
			q := Quantity{Name: f.Name, Title: f.Title, Unit: f.Unit, Better: direction(f.Unit), of: f.Of}
			if name == stalledShare {
				q.Better = -1
			}
			return q, true
		}
	}
	return Quantity{}, false
}

func levelNames() []string {
	var names []string
	for _, q := range levelQuantities {
		names = append(names, q.Name)
	}
	return names
}

// A Vocabulary has the names that ParseSLO knows, for programs that read the same texts.
type Vocabulary struct {
	Metrics      []Word            `json:"metrics"`
	Level        []Word            `json:"level"` // quantities of a level
	LevelNames   []string          `json:"level_names"`
	OtherMetrics map[string]string `json:"other_metrics"` // our name by another tool's
	OtherLevel   map[string]string `json:"other_level"`
}

// A Word is a name in a Vocabulary.
type Word struct {
	Name   string `json:"name"`
	Unit   Unit   `json:"unit"`
	Better int    `json:"better"` // like Quantity.Better
}

// Words returns the vocabulary of ParseSLO.
func Words() Vocabulary {
	v := Vocabulary{LevelNames: levelNames(), OtherMetrics: otherNames, OtherLevel: otherLevelNames}
	for _, m := range All {
		v.Metrics = append(v.Metrics, Word{m.Name, m.Unit, direction(m.Unit)})
	}
	for _, name := range slices.Concat(levelNames(), figureNames()) {
		q, _ := levelQuantity(name)
		v.Level = append(v.Level, Word{q.Name, q.Unit, q.Better})
	}
	return v
}

func figureNames() (names []string) {
	for _, f := range Figures {
		names = append(names, f.Name)
	}
	return names
}

// A Condition is a comparison of a quantity with a limit: ttft.p99>200ms. A relative condition compares
// the change against another level: ttft.p99>+10%.
type Condition struct {
	Quantity
	Above    bool    // true above Limit, else below
	Limit    float64 // in the unit of the quantity, or relative to the other level if Relative
	Relative bool
	Text     string // as written by the user
}

// ParseConditions parses a list of conditions: "ttft.p99>200ms,failures>1%". Both --fail-if and --slo
// use it.
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
		return nil, errors.New("no limits given: use a list such as ttft:p99<500ms,error<1%")
	}
	return out, nil
}

// SLOGate is the condition that a level misses its SLO.
const SLOGate = "slo"

func parseCondition(part string) (Condition, error) {
	if strings.EqualFold(part, SLOGate) {
		return Condition{Quantity: Quantity{Name: SLOGate, of: func(*Summary) *float64 { return nil }}, Text: SLOGate}, nil
	}
	at := strings.IndexAny(part, "<>")
	if at < 0 {
		return Condition{}, errors.New("< or > is missing: use a comparison such as ttft.p99<200ms")
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
		return c, fmt.Errorf("%q is not a verdict: use verdict>valid or verdict>degraded", limit)
	}
	if err != nil || math.IsNaN(c.Limit) || math.IsInf(c.Limit, 0) {
		return c, fmt.Errorf("%q is not a limit of %s: use a number in %s, such as 5%s, or a difference such as +10%%", limit, q.Name, q.Unit, q.Unit)
	}
	return c, nil
}

// parseAmount parses a number with or without its unit. A time may have any time unit. A percentage may
// be a fraction of 1.
func parseAmount(u Unit, text string) (float64, error) {
	if u == SeverityUnit {
		i := slices.Index(severities, Severity(strings.ToUpper(text)))
		if i < 0 {
			return 0, errors.New("not a verdict")
		}
		return float64(i), nil
	}
	number, unit := strings.CutSuffix(text, string(u))
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err == nil && u == percentUnit && !unit:
		if v < 0 || v >= 1 {
			return 0, errors.New("neither a percentage nor a fraction of 1")
		}
		return 100 * v, nil
	case err == nil || u != Millis:
		return v, err
	}
	d, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
	return float64(d) / 1e6, err
}

// Holds reports whether the condition is true for a value.
func (c *Condition) Holds(v float64) bool {
	if c.Above {
		return v > c.Limit
	}
	return v < c.Limit
}
