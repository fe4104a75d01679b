package report

import (
	"cmp"
	"errors"
	"iter"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// A levelRow is a level and its run.
type levelRow struct {
	run   *outcome.Run
	level *outcome.Level
}

// identity are the columns that identify the level of a row.
func identity[T any](at func(T) levelRow) []source[T] {
	return []source[T]{
		textColumn("run", func(t T) string { return at(t).run.Name }),
		textColumn("model", func(t T) string { return at(t).run.Model }),
		textColumn("url", func(t T) string { return strings.Join(at(t).run.URLs, " ") }),
		textColumn("dataset", func(t T) string { return at(t).run.Dataset }),
		textColumn("level", func(t T) string { return strings.TrimLeft(at(t).level.Name, "-") }),
		optionalCount("num_prompts", func(t T) int { return at(t).level.Prompts }),
		number("request_rate", func(t T) *float64 { return positive(at(t).level.Rate) }),
		number("max_concurrency", func(t T) *float64 { return positive(float64(at(t).level.Concurrency)) }),
	}
}

// verdictColumn is the verdict on the level of a row. The verdict also marks predicted
// rows, which look like measured ones otherwise.
func verdictColumn[T any](at func(T) levelRow) source[T] {
	return textColumn("verdict", func(t T) string { return string(at(t).level.Summary.Verdict.Severity) })
}

// predictedWord returns the mark of a prediction.
func predictedWord(yes bool) string {
	if yes {
		return string(metric.Predicted)
	}
	return ""
}

// positive returns nil for 0, which means not set.
func positive(v float64) *float64 {
	if v <= 0 {
		return nil
	}
	return &v
}

// levelRows iterates over all levels, for a table of them.
func (r *Report) levelRows(yield func(levelRow, error) bool) {
	for run, level := range r.levels() {
		if !yield(levelRow{run, level}, nil) {
			return
		}
	}
}

// The columns of rows of levels. The main columns are the same for every run.
const (
	ColumnsMain = "main"
	ColumnsAll  = "all"
)

// levelTable returns one row per level.
func (r *Report) levelTable() table {
	sources := mainColumns()
	if r.Columns == ColumnsAll {
		for _, s := range slices.Concat(moreColumns(), figureColumns(), steadyColumns(), whereColumns(r), metricColumns(r)) {
			if !slices.ContainsFunc(sources, func(c source[levelRow]) bool { return c.Name == s.Name }) {
				sources = append(sources, s)
			}
		}
	}
	return tableOf(sources, r.levelRows)
}

// mainColumns are the columns that do not depend on the run.
func mainColumns() []source[levelRow] {
	sources := append(identity(func(p levelRow) levelRow { return p }),
		instant("started_at", func(p levelRow) time.Time { return p.level.Epoch }))
	sources = append(sources, levelColumns()...)
	for _, m := range []*metric.Metric{metric.TTFT, metric.TPOT, metric.ITL, metric.E2EL} {
		sources = append(sources, statistic(columnName("mean_", m), m, func(s *metric.Stats) *float64 { return &s.Mean }),
			statistic(columnName("p50_", m), m, func(s *metric.Stats) *float64 { return &s.Median }))
		for _, p := range []float64{90, 95, 99} {
			sources = append(sources, statistic(columnName("p"+percentileWord(p)+"_", m), m, func(s *metric.Stats) *float64 { return percentileOf(s, p) }))
		}
	}
	return sources
}

// levelColumns use the names of the JSON, or of the reference's JSON.
func levelColumns() []source[levelRow] {
	return []source[levelRow]{
		textColumn("verdict", func(p levelRow) string { return string(p.level.Summary.Verdict.Severity) }),
		textColumn("reasons", func(p levelRow) string { return reasonCodes(&p.level.Summary.Verdict) }),
		count("requests", func(p levelRow) int { return p.level.Summary.Requests }),
		count("completed", func(p levelRow) int { return p.level.Summary.Completed }),
		count("failed", func(p levelRow) int { return p.level.Summary.Failed }),
		count("canceled", func(p levelRow) int { return p.level.Summary.Canceled }),
		number("duration_s", func(p levelRow) *float64 { return reported(p, &p.level.Summary.DurationS) }),
		tokens("total_input_tokens", func(p levelRow) int { return p.level.Summary.Tokens.Input }),
		tokens("total_output_tokens", func(p levelRow) int { return p.level.Summary.Tokens.Output }),
		throughput("request_throughput", func(t *metric.Throughput) *float64 { return &t.RequestsPerS }),
		goodput("request_goodput"),
		throughput("output_throughput", func(t *metric.Throughput) *float64 { return &t.OutputTokensPerS }),
		throughput("total_token_throughput", func(t *metric.Throughput) *float64 { return &t.TotalTokensPerS }),
	}
}

// reported returns nil for a 0 in the result of another tool, because most tools write 0 for a figure that
// they did not measure.
func reported(p levelRow, v *float64) *float64 {
	if v != nil && *v == 0 && unjudged(&p.level.Summary) {
		return nil
	}
	return v
}

// unjudged reports whether another tool measured a level.
func unjudged(s *metric.Summary) bool { return s.Verdict.Severity == metric.Unjudged }

// moreColumns are figures of a level that few readers need.
func moreColumns() []source[levelRow] {
	return []source[levelRow]{
		number("requests_in_flight", func(p levelRow) *float64 {
			if p.level.Summary.Peaks == nil {
				return nil
			}
			n := float64(p.level.Summary.Peaks.InFlight)
			return reported(p, &n)
		}),
		textColumn("clock", func(p levelRow) string { return p.level.Summary.Clock.Name }),
		number("coalesced_share", func(p levelRow) *float64 { return p.level.Summary.CoalescedShare() }),
	}
}

// figureColumns returns a column for every figure of a level.
func figureColumns() []source[levelRow] {
	var out []source[levelRow]
	for _, f := range metric.Figures {
		out = append(out, number(f.Name, func(p levelRow) *float64 {
			if v, known := p.level.Summary.Figures[f.Name]; known {
				return &v
			}
			return nil
		}))
	}
	return out
}

// throughput is a column of a level. The cell is empty if there is no throughput.
func throughput(name string, of func(*metric.Throughput) *float64) source[levelRow] {
	return number(name, func(p levelRow) *float64 {
		if p.level.Summary.Throughput == nil {
			return nil
		}
		return reported(p, of(p.level.Summary.Throughput))
	})
}

// goodput is a column of a level. The cell is empty if the run has no SLO.
func goodput(name string) source[levelRow] {
	return number(name, func(p levelRow) *float64 {
		if p.level.Summary.Throughput == nil {
			return nil
		}
		return p.level.Summary.Throughput.GoodPerS
	})
}

// tokens is a column of numbers of tokens.
func tokens(name string, of func(levelRow) int) source[levelRow] {
	return source[levelRow]{column{Name: name, Kind: wholeKind}, func(p levelRow) cell {
		n := float64(of(p))
		return cell{Number: n, Known: reported(p, &n) != nil}
	}}
}

// statistic is a column of a level. The cell is empty if the metric was not measured.
func statistic(name string, m *metric.Metric, of func(*metric.Stats) *float64) source[levelRow] {
	return number(name, func(p levelRow) *float64 {
		stats := p.level.Summary.Dist(m).Stats
		if stats == nil {
			return nil
		}
		return of(stats)
	})
}

// metricColumns returns the statistics of each metric, and every percentile of any
// level.
func metricColumns(r *Report) []source[levelRow] {
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
	var out []source[levelRow]
	for _, m := range metric.All {
		add := func(name string, of func(*metric.Stats) *float64) {
			out = append(out, statistic(columnName(name+"_", m), m, of))
		}
		sure := func(name string, of func(*metric.Stats) *metric.Interval) {
			add(name+"_low", func(s *metric.Stats) *float64 { return intervalOf(of(s)).Low })
			add(name+"_high", func(s *metric.Stats) *float64 { return intervalOf(of(s)).High })
		}
		out = append(out, count("n_"+m.Name, func(p levelRow) int { return p.level.Summary.Dist(m).N }))
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

// intervalOf replaces a missing interval with an interval without ends.
func intervalOf(in *metric.Interval) *metric.Interval {
	if in == nil {
		return &metric.Interval{}
	}
	return in
}

// columnName names a column of a metric, with its unit.
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

// percentileOf returns percentile p, or nil if the level does not have it.
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

// A request is a record with its level and its run.
type request struct {
	levelRow
	*tacho.Record
}

// at returns the absolute time of an offset in the record, or the zero time if it is not known.
func (q request) at(offset time.Duration) time.Time {
	if offset == tacho.Never || q.level.Epoch.IsZero() {
		return time.Time{}
	}
	return q.level.Epoch.Add(offset)
}

var errNoRecords = errors.New("rows of requests need a record of each request: use a run directory, or --rows level")

func (r *Report) requests() iter.Seq2[request, error] {
	return func(yield func(request, error) bool) {
		for run, level := range r.levels() {
			if level.Records == nil {
				yield(request{}, errNoRecords)
				return
			}
			for rec, err := range level.Records() {
				if !yield(request{levelRow{run, level}, rec}, err) || err != nil {
					return
				}
			}
		}
	}
}

// requestTable returns one row per request, with every metric of single requests.
func (r *Report) requestTable() table {
	sources := append(identity(func(q request) levelRow { return q.levelRow }), verdictColumn(func(q request) levelRow { return q.levelRow }))
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
		textColumn("id", func(q request) string { return q.ID }),
		textColumn("labels", func(q request) string {
			var all []string
			for _, l := range q.Labels {
				all = append(all, l.Key+"="+l.Value)
			}
			return strings.Join(all, " ")
		}),
		textColumn("endpoint", func(q request) string { return q.Endpoint }),
		instant("started_at", func(q request) time.Time { return q.at(q.Sent) }),
		textColumn("cause", func(q request) string { return string(failure(q).Cause) }),
		optionalCount("status", func(q request) int {
			if q.OK() && !q.run.Predicted() {
				return http.StatusOK
			}
			return failure(q).Status
		}),
		textColumn("message", func(q request) string { return failure(q).Message }),
		textColumn("finish", func(q request) string { return q.Finish }),
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

// tokenTable returns one row per token event.
func (r *Report) tokenTable() table {
	known := func(name string, of func(token) float64) source[token] {
		return number(name, func(t token) *float64 { v := of(t); return &v })
	}
	kinds := []string{"content", "reasoning", "tool call", "no text"}
	sources := append(identity(func(t token) levelRow { return t.levelRow }), verdictColumn(func(t token) levelRow { return t.levelRow }),
		count("session", func(t token) int { return int(t.Session) }),
		count("turn", func(t token) int { return t.Turn }),
		textColumn("id", func(t token) string { return t.ID }),
		count("event", func(t token) int { return t.i }),
		instant("arrived_at", func(t token) time.Time { return t.at(t.event().At) }),
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
		textColumn("kind", func(t token) string { return kinds[min(int(t.event().Kind), len(kinds)-1)] }),
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

// coordinateColumns identify the level: one column per coordinate.
func coordinateColumns(runs []outcome.Run) (sources []source[levelRow]) {
	if len(runs) == 1 && len(runs[0].Levels) > 0 {
		first := &runs[0].Levels[0]
		for _, c := range first.Coordinates {
			sources = append(sources, textColumn(c.Name, func(p levelRow) string {
				value, _ := p.level.Coordinates.Of(c.Name)
				return value
			}))
		}
		if first.Repeat > 0 {
			sources = append(sources, count("repeat", func(p levelRow) int { return p.level.Repeat }))
		}
	}
	if len(sources) > 0 {
		return sources
	}
	level := "level"
	if len(runs) == 1 && runs[0].Varies != "" {
		level = runs[0].Varies // runs of old versions have no coordinates
	}
	return []source[levelRow]{textColumn(level, func(p levelRow) string { return cmp.Or(p.level.Value, p.level.Name, "all") })}
}

// hasGoodput reports whether the run sets an SLO for its requests.
func hasGoodput(run outcome.Run) bool {
	return slices.ContainsFunc(run.Levels, func(l outcome.Level) bool { return len(l.Summary.Config.Goodput) > 0 })
}

// hasSLO reports whether the run sets an SLO for its levels.
func hasSLO(run outcome.Run) bool {
	return slices.ContainsFunc(run.Levels, func(l outcome.Level) bool { return l.Summary.Config.SLO != "" })
}

// percentileColumns are the extra percentiles requested for the table of levels.
func percentileColumns(runs []outcome.Run) (out []source[levelRow]) {
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
			if p == 99 {
				continue // always a column
			}
			out = append(out, percentileColumn(m, p))
		}
	}
	return out
}

// millisUnit ends the name of a column of times.
const millisUnit = " ms"

// percentileColumn is a percentile of a latency, for people.
func percentileColumn(m *metric.Metric, p float64) source[levelRow] {
	name := "p" + strconv.FormatFloat(p, 'f', -1, 64) + " " + strings.ToUpper(m.Name) + millisUnit
	return doubted(m.Name, withInterval(statistic(name, m, func(s *metric.Stats) *float64 { return percentileOf(s, p) }),
		m, func(s *metric.Stats) *metric.Interval { return s.At(p).Interval }))
}

// doubted marks the cells of a figure that the verdict on the level makes unusable.
func doubted(figure string, column source[levelRow]) source[levelRow] {
	value := column.of
	column.of = func(p levelRow) cell {
		out := value(p)
		out.Void = p.level.Summary.Verdict.Of(figure) == metric.Invalid
		return out
	}
	return column
}

// summaryTable is one line per level, for people.
func summaryTable(runs []outcome.Run) table {
	var sources []source[levelRow]
	if len(runs) > 1 {
		sources = append(sources, textColumn("run", func(p levelRow) string { return path.Base(p.run.Name) }))
	}
	mean := func(m *metric.Metric) source[levelRow] {
		return doubted(m.Name, withInterval(statistic("mean "+strings.ToUpper(m.Name)+millisUnit, m, func(s *metric.Stats) *float64 { return &s.Mean }), m, func(s *metric.Stats) *metric.Interval { return s.MeanInterval }))
	}
	sources = append(sources, coordinateColumns(runs)...)
	sources = append(sources,
		count("ok", func(p levelRow) int { return p.level.Summary.Completed }),
		count("failed", func(p levelRow) int { return p.level.Summary.Failed }),
		doubted("request_throughput", throughput("req/s", func(t *metric.Throughput) *float64 { return &t.RequestsPerS })),
	)
	if slices.ContainsFunc(runs, hasGoodput) {
		sources = append(sources, doubted("request_goodput", goodput("good req/s")))
	}
	sources = append(sources,
		doubted("output_throughput", throughput("out tok/s", func(t *metric.Throughput) *float64 { return &t.OutputTokensPerS })),
		doubted("total_token_throughput", throughput("total tok/s", func(t *metric.Throughput) *float64 { return &t.TotalTokensPerS })),
		mean(metric.TTFT), percentileColumn(metric.TTFT, 99),
		mean(metric.TPOT), percentileColumn(metric.TPOT, 99), percentileColumn(metric.E2EL, 99),
	)
	sources = append(sources, percentileColumns(runs)...)
	if slices.ContainsFunc(runs, hasSLO) {
		sources = append(sources, textColumn("SLO", func(p levelRow) string {
			if p.level.Summary.Config.SLO == "" {
				return ""
			}
			return string(p.level.Summary.Standing())
		}))
	}
	sources = append(sources,
		textColumn("verdict", func(p levelRow) string { return string(p.level.Summary.Verdict.Severity) }),
	)
	return tableOf(sources, (&Report{Runs: runs}).levelRows)
}
