package report

import (
	"errors"
	"iter"
	"path"
	"slices"
	"strings"

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
	words := func(name string, of func(p place) string) source[T] {
		return source[T]{Column{Name: name}, func(t T) Cell { return textCell(of(at(t))) }}
	}
	return []source[T]{
		words("run", func(p place) string { return p.run.Name }),
		words("model", func(p place) string { return p.run.Model }),
		words("url", func(p place) string { return strings.Join(p.run.URLs, " ") }),
		words("dataset", func(p place) string { return p.run.Dataset }),
		words("level", func(p place) string { return strings.TrimLeft(p.level.Name, "-") }),
		{Column{Name: "num_prompts", Kind: WholeCell}, func(t T) Cell { return wholeCell(at(t).level.Prompts) }},
		{Column{Name: "request_rate", Kind: NumberCell}, func(t T) Cell { return positive(at(t).level.Rate) }},
		{Column{Name: "max_concurrency", Kind: NumberCell}, func(t T) Cell { return positive(float64(at(t).level.Concurrency)) }},
	}
}

// positive is a number of which 0 means that there is none.
func positive(v float64) Cell { return Cell{Number: v, Known: v > 0} }

// levelTable has a row for each level, with all its statistics.
func (r *Report) levelTable() Table {
	sources := append(identity(func(p place) place { return p }), levelColumns()...)
	sources = append(sources, metricColumns(r)...)
	return tableOf(sources, func(yield func(place, error) bool) {
		for run, level := range r.levels() {
			if !yield(place{run, level}, nil) {
				return
			}
		}
	})
}

// levelColumns are named as in the JSON, or as in the reference's.
func levelColumns() []source[place] {
	words := func(name string, of func(*metric.Summary) string) source[place] {
		return source[place]{Column{Name: name}, func(p place) Cell { return textCell(of(&p.level.Summary)) }}
	}
	count := func(name string, of func(*metric.Summary) int) source[place] {
		return source[place]{Column{Name: name, Kind: WholeCell}, func(p place) Cell { return wholeCell(of(&p.level.Summary)) }}
	}
	number := func(name string, of func(*metric.Summary) *float64) source[place] {
		return source[place]{Column{Name: name, Kind: NumberCell}, func(p place) Cell { return maybeCell(of(&p.level.Summary)) }}
	}
	throughput := func(name string, of func(*metric.Throughput) *float64) source[place] {
		return number(name, func(s *metric.Summary) *float64 {
			if s.Throughput == nil {
				return nil
			}
			return of(s.Throughput)
		})
	}
	return []source[place]{
		words("verdict", func(s *metric.Summary) string { return string(s.Verdict.Severity) }),
		words("reasons", func(s *metric.Summary) string { return reasonCodes(&s.Verdict) }),
		count("requests", func(s *metric.Summary) int { return s.Requests }),
		count("completed", func(s *metric.Summary) int { return s.Completed }),
		count("failed", func(s *metric.Summary) int { return s.Failed }),
		count("canceled", func(s *metric.Summary) int { return s.Canceled }),
		number("duration_s", func(s *metric.Summary) *float64 { return &s.DurationS }),
		count("total_input_tokens", func(s *metric.Summary) int { return s.Tokens.Input }),
		count("total_output_tokens", func(s *metric.Summary) int { return s.Tokens.Output }),
		throughput("request_throughput", func(t *metric.Throughput) *float64 { return &t.RequestsPerS }),
		throughput("request_goodput", func(t *metric.Throughput) *float64 { return t.GoodPerS }),
		throughput("output_throughput", func(t *metric.Throughput) *float64 { return &t.OutputTokensPerS }),
		throughput("total_token_throughput", func(t *metric.Throughput) *float64 { return &t.TotalTokensPerS }),
		number("requests_in_flight", func(s *metric.Summary) *float64 {
			if s.Peaks == nil {
				return nil
			}
			n := float64(s.Peaks.InFlight)
			return &n
		}),
		words("clock", func(s *metric.Summary) string { return s.Clock.Name }),
		number("coalesced_share", func(s *metric.Summary) *float64 { return s.CoalescedShare() }),
	}
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
		add := func(statistic string, of func(*metric.Stats) *float64) {
			out = append(out, source[place]{Column{Name: columnName(statistic+"_", m), Kind: NumberCell}, func(p place) Cell {
				if stats := p.level.Summary.Dist(m).Stats; stats != nil {
					return maybeCell(of(stats))
				}
				return Cell{}
			}})
		}
		out = append(out, source[place]{Column{Name: "n_" + m.Name, Kind: WholeCell}, func(p place) Cell { return wholeCell(p.level.Summary.Dist(m).N) }})
		add("mean", func(s *metric.Stats) *float64 { return &s.Mean })
		add("median", func(s *metric.Stats) *float64 { return &s.Median })
		add("std", func(s *metric.Stats) *float64 { return &s.Std })
		add("min", func(s *metric.Stats) *float64 { return &s.Min })
		add("max", func(s *metric.Stats) *float64 { return &s.Max })
		for _, p := range percentiles {
			add("p"+percentileWord(p), func(s *metric.Stats) *float64 { return percentileOf(s, p) })
		}
	}
	return out
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

var errNoRecords = errors.New("rows of requests are made of records, and there are none here: name a run directory")

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
func (r *Report) requestTable() Table {
	sources := append(identity(func(q request) place { return q.place }), requestColumns()...)
	for _, m := range metric.All {
		if m.PerEvent {
			continue
		}
		sources = append(sources, source[request]{Column{Name: columnName("", m), Kind: NumberCell}, func(q request) (c Cell) {
			m.Of(q.Record, func(v float64) { c = numberCell(v) })
			return c
		}})
	}
	return tableOf(sources, r.requests())
}

func requestColumns() []source[request] {
	words := func(name string, of func(*tacho.Record) string) source[request] {
		return source[request]{Column{Name: name}, func(q request) Cell { return textCell(of(q.Record)) }}
	}
	whole := func(name string, of func(*tacho.Record) int) source[request] {
		return source[request]{Column{Name: name, Kind: WholeCell}, func(q request) Cell { return wholeCell(of(q.Record)) }}
	}
	failure := func(q *tacho.Record) tacho.Failure {
		if q.Failure == nil {
			return tacho.Failure{}
		}
		return *q.Failure
	}
	return []source[request]{
		whole("session", func(q *tacho.Record) int { return int(q.Session) }),
		whole("turn", func(q *tacho.Record) int { return q.Turn }),
		words("id", func(q *tacho.Record) string { return q.ID }),
		words("labels", func(q *tacho.Record) string {
			var all []string
			for _, l := range q.Labels {
				all = append(all, l.Key+"="+l.Value)
			}
			return strings.Join(all, " ")
		}),
		words("endpoint", func(q *tacho.Record) string { return q.Endpoint }),
		words("cause", func(q *tacho.Record) string { return string(failure(q).Cause) }),
		whole("status", func(q *tacho.Record) int { return failure(q).Status }),
		words("message", func(q *tacho.Record) string { return failure(q).Message }),
		words("finish", func(q *tacho.Record) string { return q.Finish }),
		{Column{Name: "due_s", Kind: NumberCell}, func(q request) Cell { return numberCell(seconds(q.Due)) }},
		{Column{Name: "sent_s", Kind: NumberCell}, func(q request) Cell { return Cell{Number: seconds(q.Sent), Known: q.Sent != tacho.Never} }},
		{Column{Name: "end_s", Kind: NumberCell}, func(q request) Cell { return numberCell(seconds(q.End)) }},
		whole("events", func(q *tacho.Record) int { return len(q.Events) }),
	}
}

// A token is one event of a request.
type token struct {
	request
	i int
}

// tokenTable has a row for each token event.
func (r *Report) tokenTable() Table {
	whole := func(name string, of func(token) int) source[token] {
		return source[token]{Column{Name: name, Kind: WholeCell}, func(t token) Cell { return wholeCell(of(t)) }}
	}
	number := func(name string, of func(token) float64) source[token] {
		return source[token]{Column{Name: name, Kind: NumberCell}, func(t token) Cell { return numberCell(of(t)) }}
	}
	kinds := []string{"content", "reasoning", "tool call"}
	sources := append(identity(func(t token) place { return t.place }),
		whole("session", func(t token) int { return int(t.Session) }),
		whole("turn", func(t token) int { return t.Turn }),
		source[token]{Column{Name: "id"}, func(t token) Cell { return textCell(t.ID) }},
		whole("event", func(t token) int { return t.i }),
		number("at_s", func(t token) float64 { return seconds(t.Events[t.i].At) }),
		source[token]{Column{Name: "gap_ms", Kind: NumberCell}, func(t token) Cell {
			if t.i == 0 {
				return Cell{}
			}
			return numberCell(float64(t.Events[t.i].At-t.Events[t.i-1].At) / 1e6)
		}},
		number("read_lag_ms", func(t token) float64 { return float64(t.Events[t.i].ReadLag) / 1e6 }),
		whole("tokens", func(t token) int { return int(t.Events[t.i].Tokens) }),
		source[token]{Column{Name: "kind"}, func(t token) Cell { return textCell(kinds[min(int(t.Events[t.i].Kind), len(kinds)-1)]) }},
		whole("coalesced", func(t token) int {
			if t.Events[t.i].Coalesced {
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

// glance is one line for each level, for people.
func glance(runs []outcome.Run) Table {
	several := len(runs) > 1
	level := "level"
	if len(runs) == 1 && runs[0].Varies != "" {
		level = runs[0].Varies
	}
	number := func(name string, of func(*metric.Summary) *float64) source[place] {
		return source[place]{Column{Name: name, Kind: NumberCell, Decimals: 2}, func(p place) Cell { return maybeCell(of(&p.level.Summary)) }}
	}
	throughput := func(name string, of func(*metric.Throughput) float64) source[place] {
		return number(name, func(s *metric.Summary) *float64 {
			if s.Throughput == nil {
				return nil
			}
			v := of(s.Throughput)
			return &v
		})
	}
	statistic := func(name string, m *metric.Metric, of func(*metric.Stats) float64) source[place] {
		return number(name, func(s *metric.Summary) *float64 {
			stats := s.Dist(m).Stats
			if stats == nil {
				return nil
			}
			v := of(stats)
			return &v
		})
	}
	var sources []source[place]
	if several {
		sources = append(sources, source[place]{Column{Name: "run"}, func(p place) Cell { return textCell(path.Base(p.run.Name)) }})
	}
	sources = append(sources,
		source[place]{Column{Name: level}, func(p place) Cell {
			if p.level.Value == "" {
				return textCell(p.level.Name)
			}
			return textCell(p.level.Value)
		}},
		source[place]{Column{Name: "ok", Kind: WholeCell}, func(p place) Cell { return wholeCell(p.level.Summary.Completed) }},
		source[place]{Column{Name: "failed", Kind: WholeCell}, func(p place) Cell { return wholeCell(p.level.Summary.Failed) }},
		throughput("req/s", func(t *metric.Throughput) float64 { return t.RequestsPerS }),
		throughput("out tok/s", func(t *metric.Throughput) float64 { return t.OutputTokensPerS }),
		throughput("total tok/s", func(t *metric.Throughput) float64 { return t.TotalTokensPerS }),
		statistic("mean TTFT", metric.TTFT, mean), statistic("p99 TTFT", metric.TTFT, p99),
		statistic("mean TPOT", metric.TPOT, mean), statistic("mean ITL", metric.ITL, mean),
		source[place]{Column{Name: "verdict"}, func(p place) Cell { return textCell(string(p.level.Summary.Verdict.Severity)) }},
	)
	r := &Report{Runs: runs}
	return tableOf(sources, func(yield func(place, error) bool) {
		for run, level := range r.levels() {
			if !yield(place{run, level}, nil) {
				return
			}
		}
	})
}
