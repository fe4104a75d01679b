package archive

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// A sheet collects a level of another tool's result before it becomes an outcome.
type sheet struct {
	entry
	requests []sheetRequest // all requests, if the result contains them
	partial  bool           // requests have only their first and last token
}

// newSheet returns an empty level for a tool's result.
func newSheet(tool, version string) *sheet {
	s := &sheet{}
	s.about.Tool, s.about.Version = tool, version
	s.summary().Throughput = &metric.Throughput{}
	return s
}

func (s *sheet) summary() *metric.Summary { return &s.level.Summary }

// dist sets the statistics of a metric, if there are any.
func (s *sheet) dist(m *metric.Metric, n int, stats *metric.Stats) {
	if stats != nil {
		s.summary().Dists = append(s.summary().Dists, metric.Dist{Name: m.Name, Unit: m.Unit, N: n, Stats: stats})
	}
}

// counts sets the numbers of requests by result.
func (s *sheet) counts(completed, failed, canceled int) {
	s.summary().Counts = metric.Counts{
		Requests: completed + failed + canceled, Completed: completed, Inputs: completed, Failed: failed, Canceled: canceled,
		DurationS: s.summary().DurationS,
	}
}

// load sets the configured load. 0 means not configured.
func (s *sheet) load(prompts int, rate float64, concurrency int) {
	s.level.Prompts, s.level.Rate, s.level.Concurrency = prompts, rate, concurrency
	s.summary().Config.RequestRate, s.summary().Config.MaxConcurrency = rate, concurrency
}

// throughput sets the throughput per second.
func (s *sheet) throughput(requests, output, total float64) {
	t := s.summary().Throughput
	t.RequestsPerS, t.OutputTokensPerS, t.TotalTokensPerS = requests, output, total
}

// Tools with a fixed list of percentiles write up to twelve for each latency, also below the median. The
// block of their results has the usual ones. The median has a line of its own.
const mostPercentiles = 5

var usualPercentiles = []float64{90, 95, 99}

// entries finishes the sheet. note explains figures of the tool that differ from ours.
func (s *sheet) entries(note string) []entry {
	if len(s.requests) > 0 {
		s.fromRequests()
	}
	c := &s.summary().Config
	for i := range metric.Sections {
		section := &metric.Sections[i]
		stats := s.summary().Dist(section.Metric).Stats
		if stats == nil {
			continue
		}
		c.Metrics = append(c.Metrics, section.Key)
		var has []float64
		for _, p := range stats.Percentiles {
			has = append(has, p.P)
		}
		if len(c.Metrics) == 1 {
			c.Percentiles = has
		}
		c.Percentiles = slices.DeleteFunc(c.Percentiles, func(p float64) bool { return !slices.Contains(has, p) })
	}
	slices.Sort(c.Percentiles)
	many := len(c.Percentiles) > mostPercentiles
	c.Percentiles = slices.DeleteFunc(c.Percentiles, func(p float64) bool {
		return p == 50 || many && !slices.Contains(usualPercentiles, p)
	})
	text := "measured by " + strings.TrimSpace(s.about.Tool+" "+s.about.Version) + ", not judged by tacho"
	if note != "" {
		text += ": " + note
	}
	s.summary().Verdict = metric.Verdict{Severity: metric.Unjudged, Reasons: []metric.Reason{{Code: "read", Severity: metric.Note, Text: text}}}
	return []entry{s.entry}
}

// addUp computes the figures of the level from its requests, if the result contains nothing else.
func (s *sheet) addUp() {
	var sum metric.Accumulator
	for r := range recordsOf(s.requests)() {
		_ = sum.Add(r) // never fails
	}
	of := sum.Summary(metric.DefaultConfig())
	s.summary().Counts, s.summary().Tokens, s.summary().Throughput = of.Counts, of.Tokens, of.Throughput
	s.summary().Config.Percentiles = of.Config.Percentiles
	s.load(of.Requests, 0, 0)
}

// fromRequests summarizes the requests. Figures in the result take precedence, because its readers know
// them.
func (s *sheet) fromRequests() {
	s.level.Records = recordsOf(s.requests)
	var sum metric.Accumulator
	for r := range s.level.Records() {
		_ = sum.Add(r) // never fails
	}
	c := s.summary().Config
	for _, d := range s.summary().Dists {
		for _, p := range d.Stats.Percentiles {
			if !slices.Contains(c.Percentiles, p.P) {
				c.Percentiles = append(c.Percentiles, p.P)
			}
		}
	}
	said := s.summary().Dists
	summed := sum.Summary(c)
	summed.Dists = slices.DeleteFunc(summed.Dists, func(d metric.Dist) bool {
		return !slices.Contains(fromTold, d.Name) || s.partial && slices.Contains(fromEvents, d.Name)
	})
	s.summary().Dists, s.summary().Failures, s.summary().Events = summed.Dists, summed.Failures, summed.Events
	for _, d := range said {
		s.overlay(d)
	}
}

// Metrics that follow from a request of another tool. Times inside the client are unknown.
var (
	fromTold   = []string{"ttft", "tpot", "itl", "e2el", "stream_rate", "tokens_per_event", "token_gap", "input_tokens", "output_tokens"}
	fromEvents = []string{"itl", "tokens_per_event", "token_gap"} // if each event is known
)

// overlay replaces computed figures by the figures in the result.
func (s *sheet) overlay(said metric.Dist) {
	i := slices.IndexFunc(s.summary().Dists, func(d metric.Dist) bool { return d.Name == said.Name })
	if i < 0 {
		s.summary().Dists = append(s.summary().Dists, said)
		return
	}
	to := s.summary().Dists[i].Stats
	if to == nil {
		s.summary().Dists[i] = said
		return
	}
	from := said.Stats
	for _, f := range []struct {
		to   *float64
		from float64
	}{{&to.Mean, from.Mean}, {&to.Median, from.Median}, {&to.Std, from.Std}, {&to.Min, from.Min}, {&to.Max, from.Max}} {
		if !math.IsNaN(f.from) {
			*f.to = f.from
		}
	}
	for _, p := range from.Percentiles {
		if k := slices.IndexFunc(to.Percentiles, func(v metric.Percentile) bool { return v.P == p.P }); k >= 0 {
			to.Percentiles[k].Value = p.Value
		}
	}
}

// statsOf reads statistics under the names used by several tools and multiplies them by scale. Missing
// statistics are NaN. Without a mean, statsOf returns nil.
func statsOf(d doc, scale float64) *metric.Stats {
	s := &metric.Stats{Mean: math.NaN(), Median: math.NaN(), Std: math.NaN(), Min: math.NaN(), Max: math.NaN()}
	for key, value := range d {
		v, ok := value.(float64)
		if !ok {
			continue
		}
		v *= scale
		switch key {
		case "mean", "avg":
			s.Mean = v
		case "median":
			s.Median = v
		case "std", "stddev", "std_dev":
			s.Std = v
		case "min":
			s.Min = v
		case "max":
			s.Max = v
		default:
			word, isP := strings.CutPrefix(key, "p")
			if p, err := strconv.ParseFloat(word, 64); isP && err == nil && p >= 0 && p <= 100 {
				s.Percentiles = append(s.Percentiles, metric.Percentile{P: p, Value: v})
			}
		}
	}
	if math.IsNaN(s.Mean) {
		return nil
	}
	withMedian(s)
	return s
}

// withMedian sets the median and the 50th percentile, which are equal, if either is known, and sorts
// the percentiles.
func withMedian(s *metric.Stats) {
	i := slices.IndexFunc(s.Percentiles, func(p metric.Percentile) bool { return p.P == 50 })
	switch {
	case i >= 0 && math.IsNaN(s.Median):
		s.Median = s.Percentiles[i].Value
	case i < 0 && !math.IsNaN(s.Median):
		s.Percentiles = append(s.Percentiles, metric.Percentile{P: 50, Value: s.Median})
	}
	slices.SortFunc(s.Percentiles, func(a, b metric.Percentile) int {
		if a.P < b.P {
			return -1
		}
		return 1
	})
}

// A sheetRequest is a request of another tool, with times in seconds.
type sheetRequest struct {
	start   float64 // from the first request
	ttft    float64 // from start; 0 means no token
	last    float64 // from start to the last token; 0 means the sum of ttft and gaps
	end     float64 // from start to the end; 0 means the last token
	gaps    []float64
	input   int
	output  int
	failure string
}

// record converts the request. Unknown timestamps are Never.
func (t *sheetRequest) record(i int) *tacho.Record {
	at := func(s float64) time.Duration { return time.Duration(math.Round(within(s) * 1e9)) }
	r := &tacho.Record{Session: uint64(i), Input: t.input, Output: t.output, OutputFrom: tacho.FromUsage}
	r.Timeline = tacho.NewTimeline(at(t.start))
	r.Sent = r.Due
	if t.ttft > 0 {
		r.Events = append(r.Events, tacho.Event{At: at(t.start + t.ttft)})
		next := t.start + t.ttft
		for _, gap := range t.gaps {
			next += gap
			r.Events = append(r.Events, tacho.Event{At: at(next)})
		}
		if len(t.gaps) == 0 && t.last > t.ttft {
			r.Events = append(r.Events, tacho.Event{At: at(t.start + t.last)})
		}
		r.Head = r.First()
	}
	r.End = max(r.Last(), at(t.start+t.end), r.Due)
	if t.failure != "" {
		r.Failure = &tacho.Failure{Cause: tacho.Status, Message: t.failure}
		r.Output, r.OutputFrom = 0, ""
	}
	return r
}

// within limits a time to 30 years, so that sums and differences of times cannot overflow. A time that is no number is 0.
func within(seconds float64) float64 {
	const most = 1e9
	if math.IsNaN(seconds) {
		return 0
	}
	return min(max(seconds, -most), most)
}

// recordsOf yields the records of requests, one at a time.
func recordsOf(requests []sheetRequest) func() iter.Seq2[*tacho.Record, error] {
	return func() iter.Seq2[*tacho.Record, error] {
		return func(yield func(*tacho.Record, error) bool) {
			for i := range requests {
				if !yield(requests[i].record(i), nil) {
					return
				}
			}
		}
	}
}

// fromZero shifts all requests so that the first starts at 0.
func fromZero(requests []sheetRequest) {
	if len(requests) == 0 {
		return
	}
	first := requests[0].start
	for i := range requests {
		first = min(first, requests[i].start)
	}
	for i := range requests {
		requests[i].start -= first
	}
}

// began parses a time in the formats of several tools.
func began(text string) time.Time {
	for _, layout := range []string{"20060102-150405", time.RFC3339Nano, "2006-01-02T15:04:05.999999", "2006-01-02 15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t
		}
	}
	return time.Time{}
}

// unixTime returns a time in seconds since 1970; 0 means unknown.
func unixTime(s float64) time.Time {
	if s <= 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(s*1e9)).UTC()
}

// field adds a fact about the run.
func (s *sheet) field(name string, value any) {
	if text := fmt.Sprint(value); value != nil && text != "" {
		s.about.Metadata = append(s.about.Metadata, outcome.Field{Name: name, Value: text})
	}
}
