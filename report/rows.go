package report

import (
	"cmp"
	"errors"
	"iter"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"tacho"
	"tacho/metric"
	"tacho/outcome"
)

// A place is a level and the run it is of.
type place struct {
	run   *outcome.Run
	level *outcome.Level
}

// identity are the columns that say what a row is of.
func identity[T any](at func(T) place) []source[T] {
	return []source[T]{
		words("run", func(t T) string { return at(t).run.Name }),
		words("model", func(t T) string { return at(t).run.Model }),
		words("url", func(t T) string { return strings.Join(at(t).run.URLs, " ") }),
		words("dataset", func(t T) string { return at(t).run.Dataset }),
		words("level", func(t T) string { return strings.TrimLeft(at(t).level.Name, "-") }),
		asked("num_prompts", func(t T) int { return at(t).level.Prompts }),
		number("request_rate", func(t T) *float64 { return positive(at(t).level.Rate) }),
		number("max_concurrency", func(t T) *float64 { return positive(float64(at(t).level.Concurrency)) }),
	}
}

// judged is the verdict on the level that a row is of: without it nobody would
// see that it was predicted and not measured.
func judged[T any](at func(T) place) source[T] {
	return words("verdict", func(t T) string { return string(at(t).level.Summary.Verdict.Severity) })
}

// predictedWord is what is said of what nobody measured.
func predictedWord(yes bool) string {
	if yes {
		return string(metric.Predicted)
	}
	return ""
}

// positive is a number of which 0 means that there is none.
func positive(v float64) *float64 {
	if v <= 0 {
		return nil
	}
	return &v
}

// places are all levels, for a table of them.
func (r *Report) places(yield func(place, error) bool) {
	for run, level := range r.levels() {
		if !yield(place{run, level}, nil) {
			return
		}
	}
}

// levelTable has a row for each level, with all its statistics.
func (r *Report) levelTable() table {
	here := func(p place) place { return p }
	return tableOf(slices.Concat(identity(here), levelColumns(), figureColumns(), steadyColumns(), whereColumns(r), metricColumns(r)), r.places)
}

// levelColumns are named as in the JSON, or as in the reference's.
func levelColumns() []source[place] {
	return []source[place]{
		words("verdict", func(p place) string { return string(p.level.Summary.Verdict.Severity) }),
		words("reasons", func(p place) string { return reasonCodes(&p.level.Summary.Verdict) }),
		count("requests", func(p place) int { return p.level.Summary.Requests }),
		count("completed", func(p place) int { return p.level.Summary.Completed }),
		count("failed", func(p place) int { return p.level.Summary.Failed }),
		count("canceled", func(p place) int { return p.level.Summary.Canceled }),
		number("duration_s", func(p place) *float64 { return &p.level.Summary.DurationS }),
		count("total_input_tokens", func(p place) int { return p.level.Summary.Tokens.Input }),
		count("total_output_tokens", func(p place) int { return p.level.Summary.Tokens.Output }),
		throughput("request_throughput", func(t *metric.Throughput) *float64 { return &t.RequestsPerS }),
		throughput("request_goodput", func(t *metric.Throughput) *float64 { return t.GoodPerS }),
		throughput("output_throughput", func(t *metric.Throughput) *float64 { return &t.OutputTokensPerS }),
		throughput("total_token_throughput", func(t *metric.Throughput) *float64 { return &t.TotalTokensPerS }),
		number("requests_in_flight", func(p place) *float64 {
			if p.level.Summary.Peaks == nil {
				return nil
			}
			n := float64(p.level.Summary.Peaks.InFlight)
			return &n
		}),
		words("clock", func(p place) string { return p.level.Summary.Clock.Name }),
		number("coalesced_share", func(p place) *float64 { return p.level.Summary.CoalescedShare() }),
	}
}

// figureColumns has every figure of a level.
func figureColumns() []source[place] {
	var out []source[place]
	for _, f := range metric.Figures {
		out = append(out, number(f.Name, func(p place) *float64 {
			if v, known := p.level.Summary.Figures[f.Name]; known {
				return &v
			}
			return nil
		}))
	}
	return out
}

// throughput is a column of a level, where there is any throughput.
func throughput(name string, of func(*metric.Throughput) *float64) source[place] {
	return number(name, func(p place) *float64 {
		if p.level.Summary.Throughput == nil {
			return nil
		}
		return of(p.level.Summary.Throughput)
	})
}

// statistic is a column of a level, where the metric was measured.
func statistic(name string, m *metric.Metric, of func(*metric.Stats) *float64) source[place] {
	return number(name, func(p place) *float64 {
		stats := p.level.Summary.Dist(m).Stats
		if stats == nil {
			return nil
		}
		if v := of(stats); v != nil && !math.IsNaN(*v) {
			return v
		}
		return nil
	})
}

// metricColumns has for each metric its statistics, and every percentile that
// some level has.
func metricColumns(r *Report) []source[place] {
	var percentiles []float64
	for _, level := range r.levels() {
		for _, d := range level.Summary.Dists {
			for _, p := range statsOrZero(d.Stats).Percentiles {
				if !slices.Contains(percentiles, p.P) {
					percentiles = append(percentiles, p.P)
				}
			}
		}
	}
	var out []source[place]
	for _, m := range metric.All {
		add := func(name string, of func(*metric.Stats) *float64) {
			out = append(out, statistic(columnName(name+"_", m), m, of))
		}
		sure := func(name string, of func(*metric.Stats) *metric.Interval) {
			add(name+"_low", func(s *metric.Stats) *float64 { return intervalOf(of(s)).Low })
			add(name+"_high", func(s *metric.Stats) *float64 { return intervalOf(of(s)).High })
		}
		out = append(out, count("n_"+m.Name, func(p place) int { return p.level.Summary.Dist(m).N }))
		out = append(out, statistic("effective_n_"+m.Name, m, func(s *metric.Stats) *float64 { return &intervalOf(s.MeanInterval).Effective }))
		add("mean", func(s *metric.Stats) *float64 { return &s.Mean })
		sure("mean", func(s *metric.Stats) *metric.Interval { return s.MeanInterval })
		add("median", func(s *metric.Stats) *float64 { return &s.Median })
		sure("median", func(s *metric.Stats) *metric.Interval { return s.MedianInterval })
		add("std", func(s *metric.Stats) *float64 { return &s.Std })
		add("min", func(s *metric.Stats) *float64 { return &s.Min })
		add("max", func(s *metric.Stats) *float64 { return &s.Max })
		for _, p := range percentiles {
			add("p"+percentileWord(p), func(s *metric.Stats) *float64 { return percentileOf(s, p) })
			sure("p"+percentileWord(p), func(s *metric.Stats) *metric.Interval { return s.At(p).Interval })
		}
	}
	return out
}

// intervalOf is an interval without ends where there is none.
func intervalOf(in *metric.Interval) *metric.Interval {
	if in == nil {
		return &metric.Interval{}
	}
	return in
}

// columnName is the name of a column of a metric, with its unit.
func columnName(prefix string, m *metric.Metric) string {
	if m.Unit == metric.Millis {
		return prefix + m.Name + "_ms"
	}
	return prefix + m.Name
}

func statsOrZero(s *metric.Stats) metric.Stats {
	if s == nil {
		return metric.Stats{}
	}
	return *s
}

// percentileOf is nil where the level did not ask for p.
func percentileOf(s *metric.Stats, p float64) *float64 {
	for _, v := range s.Percentiles {
		if v.P == p {
			return &v.Value
		}
	}
	return nil
}

func reasonCodes(v *metric.Verdict) string {
	var codes []string
	for _, r := range v.Reasons {
		codes = append(codes, r.Code)
	}
	return strings.Join(codes, " ")
}

// A request is a record, its level and its run.
type request struct {
	place
	*tacho.Record
}

var errNoRecords = errors.New("rows of requests are made of records, and there are none here: name a run directory, or ask for rows of levels")

func (r *Report) requests() iter.Seq2[request, error] {
	return func(yield func(request, error) bool) {
		for run, level := range r.levels() {
			if level.Records == nil {
				yield(request{}, errNoRecords)
				return
			}
			for rec, err := range level.Records() {
				if !yield(request{place{run, level}, rec}, err) || err != nil {
					return
				}
			}
		}
	}
}

// requestTable has a row for each request, with every metric that has one value
// for a request.
func (r *Report) requestTable() table {
	sources := append(identity(func(q request) place { return q.place }), judged(func(q request) place { return q.place }))
	sources = append(sources, requestColumns()...)
	for i, m := range metric.All {
		if !m.PerEvent {
			sources = append(sources, number(columnName("", m), func(q request) (out *float64) {
				of := metric.WithStalls(q.level.Summary.Config.StallMillis)[i].Of
				of(q.Record, func(v float64) { out = &v })
				return out
			}))
		}
	}
	return tableOf(sources, r.requests())
}

func requestColumns() []source[request] {
	failure := func(q request) tacho.Failure {
		if q.Failure == nil {
			return tacho.Failure{}
		}
		return *q.Failure
	}
	moment := func(name string, of func(request) time.Duration) source[request] {
		return number(name, func(q request) *float64 {
			if of(q) == tacho.Never {
				return nil
			}
			s := seconds(of(q))
			return &s
		})
	}
	return []source[request]{
		count("session", func(q request) int { return int(q.Session) }),
		count("turn", func(q request) int { return q.Turn }),
		words("id", func(q request) string { return q.ID }),
		words("labels", func(q request) string {
			var all []string
			for _, l := range q.Labels {
				all = append(all, l.Key+"="+l.Value)
			}
			return strings.Join(all, " ")
		}),
		words("endpoint", func(q request) string { return q.Endpoint }),
		words("cause", func(q request) string { return string(failure(q).Cause) }),
		count("status", func(q request) int { return failure(q).Status }),
		words("message", func(q request) string { return failure(q).Message }),
		words("finish", func(q request) string { return q.Finish }),
		moment("due_s", func(q request) time.Duration { return q.Due }),
		moment("sent_s", func(q request) time.Duration { return q.Sent }),
		moment("end_s", func(q request) time.Duration { return q.End }),
		count("events", func(q request) int { return len(q.Events) }),
	}
}

// A token is one event of a request.
type token struct {
	request
	i int
}

func (t token) event() *tacho.Event { return &t.Events[t.i] }

// tokenTable has a row for each token event.
func (r *Report) tokenTable() table {
	known := func(name string, of func(token) float64) source[token] {
		return number(name, func(t token) *float64 { v := of(t); return &v })
	}
	kinds := []string{"content", "reasoning", "tool call"}
	sources := append(identity(func(t token) place { return t.place }), judged(func(t token) place { return t.place }),
		count("session", func(t token) int { return int(t.Session) }),
		count("turn", func(t token) int { return t.Turn }),
		words("id", func(t token) string { return t.ID }),
		count("event", func(t token) int { return t.i }),
		known("at_s", func(t token) float64 { return seconds(t.event().At) }),
		number("gap_ms", func(t token) *float64 {
			if t.i == 0 {
				return nil
			}
			gap := float64(t.event().At-t.Events[t.i-1].At) / 1e6
			return &gap
		}),
		known("read_lag_ms", func(t token) float64 { return float64(t.event().ReadLag) / 1e6 }),
		count("tokens", func(t token) int { return int(t.event().Tokens) }),
		words("kind", func(t token) string { return kinds[min(int(t.event().Kind), len(kinds)-1)] }),
		count("coalesced", func(t token) int {
			if t.event().Coalesced() {
				return 1
			}
			return 0
		}))
	return tableOf(sources, func(yield func(token, error) bool) {
		for q, err := range r.requests() {
			if err != nil {
				yield(token{}, err)
				return
			}
			for i := range q.Events {
				if !yield(token{q, i}, nil) {
					return
				}
			}
		}
	})
}

// where says which level it is: a column for each coordinate.
func where(runs []outcome.Run) (sources []source[place]) {
	if len(runs) == 1 && len(runs[0].Levels) > 0 {
		first := &runs[0].Levels[0]
		for _, c := range first.Coordinates {
			sources = append(sources, words(c.Name, func(p place) string {
				value, _ := p.level.Coordinates.Of(c.Name)
				return value
			}))
		}
		if first.Repeat > 0 {
			sources = append(sources, count("repeat", func(p place) int { return p.level.Repeat }))
		}
	}
	if len(sources) > 0 {
		return sources
	}
	level := "level"
	if len(runs) == 1 && runs[0].Varies != "" {
		level = runs[0].Varies // of a run before there were coordinates
	}
	return []source[place]{words(level, func(p place) string { return cmp.Or(p.level.Value, p.level.Name, "all") })}
}

// asksGoodput says whether some level of a run has limits that a good request
// keeps.
func asksGoodput(run outcome.Run) bool {
	return slices.ContainsFunc(run.Levels, func(l outcome.Level) bool { return len(l.Summary.Config.Goodput) > 0 })
}

// askedPercentiles are those that the table of all levels was to have besides.
func askedPercentiles(runs []outcome.Run) (out []source[place]) {
	var all []float64
	for _, run := range runs {
		for _, l := range run.Levels {
			all = append(all, l.Summary.Config.TablePercentiles...)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, m := range []*metric.Metric{metric.TTFT, metric.TPOT, metric.E2EL} {
		for _, p := range all {
			if m == metric.TTFT && p == 99 {
				continue // it has a column
			}
			name := "p" + strconv.FormatFloat(p, 'f', -1, 64) + " " + strings.ToUpper(m.Name)
			out = append(out, sure(statistic(name, m, func(s *metric.Stats) *float64 { return percentileOf(s, p) }),
				m, func(s *metric.Stats) *metric.Interval { return s.At(p).Interval }))
		}
	}
	return out
}

// glance is one line for each level, for people.
func glance(runs []outcome.Run) table {
	var sources []source[place]
	if len(runs) > 1 {
		sources = append(sources, words("run", func(p place) string { return path.Base(p.run.Name) }))
	}
	mean := func(name string, m *metric.Metric) source[place] {
		return sure(statistic(name, m, func(s *metric.Stats) *float64 { return &s.Mean }), m, func(s *metric.Stats) *metric.Interval { return s.MeanInterval })
	}
	sources = append(sources, where(runs)...)
	sources = append(sources,
		count("ok", func(p place) int { return p.level.Summary.Completed }),
		count("failed", func(p place) int { return p.level.Summary.Failed }),
		throughput("req/s", func(t *metric.Throughput) *float64 { return &t.RequestsPerS }),
	)
	if slices.ContainsFunc(runs, asksGoodput) {
		sources = append(sources, throughput("good req/s", func(t *metric.Throughput) *float64 { return t.GoodPerS }))
	}
	sources = append(sources,
		throughput("out tok/s", func(t *metric.Throughput) *float64 { return &t.OutputTokensPerS }),
		throughput("total tok/s", func(t *metric.Throughput) *float64 { return &t.TotalTokensPerS }),
		mean("mean TTFT", metric.TTFT),
		sure(statistic("p99 TTFT", metric.TTFT, func(s *metric.Stats) *float64 { return percentileOf(s, 99) }),
			metric.TTFT, func(s *metric.Stats) *metric.Interval { return s.At(99).Interval }),
		mean("mean TPOT", metric.TPOT), mean("mean ITL", metric.ITL),
	)
	sources = append(sources, askedPercentiles(runs)...)
	sources = append(sources,
		words("verdict", func(p place) string { return string(p.level.Summary.Verdict.Severity) }),
	)
	return tableOf(sources, (&Report{Runs: runs}).places)
}
