package report

import (
	"io"
	"math"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
)

var flatFormat = Format{
	Name: "flat", Ext: "flat.json", Doc: "a short JSON document for jq: main metrics of each level, at the top too if there is one level",
	Render: renderFlat,
}

// flatLevel has the main metrics of a level. Rates are per second; nil means not set or
// not measured.
type flatLevel struct {
	Run            string          `json:"run,omitempty"`
	Load           string          `json:"load"`
	RequestRate    *float64        `json:"request_rate"`
	MaxConcurrency *float64        `json:"max_concurrency"`
	Verdict        metric.Severity `json:"verdict"`
	Sentence       string          `json:"sentence"`

	TTFT *flatLatency `json:"ttft"`
	TPOT *flatLatency `json:"tpot"`
	ITL  *flatLatency `json:"itl"`
	E2EL *flatLatency `json:"e2el"`

	Requests          int      `json:"requests"`
	Failed            int      `json:"failed"`
	RequestThroughput *float64 `json:"request_throughput"`
	OutputThroughput  *float64 `json:"output_throughput"`
}

// flatLatency has the statistics of a latency in milliseconds.
type flatLatency struct {
	Mean *float64 `json:"mean"`
	P50  *float64 `json:"p50"`
	P90  *float64 `json:"p90"`
	P95  *float64 `json:"p95"`
	P99  *float64 `json:"p99"`
}

func renderFlat(w io.Writer, r *Report) error {
	out := struct {
		Schema     string      `json:"schema"`
		*flatLevel             // the fields of a single level are fields of the document
		Levels     []flatLevel `json:"levels"`
	}{Schema: "tacho.flat/1", Levels: []flatLevel{}} // changes if readers would break
	for run, level := range r.levels() {
		out.Levels = append(out.Levels, flatten(run, level))
	}
	if len(out.Levels) == 1 {
		out.flatLevel = &out.Levels[0]
	}
	return writeIndented(w, out)
}

func flatten(run *outcome.Run, level *outcome.Level) flatLevel {
	alone := []outcome.Level{*level}
	s := &level.Summary
	out := flatLevel{
		Run: safe(run.Name), Load: safe(conclusion.LoadOf(alone)), RequestRate: positive(level.Rate), MaxConcurrency: positive(float64(level.Concurrency)),
		Verdict: s.Verdict.Severity, Sentence: safe(conclusion.OfLevels(alone).Text[0]), Requests: s.Requests, Failed: s.Failed,
		TTFT: latencyOf(s, metric.TTFT), TPOT: latencyOf(s, metric.TPOT), ITL: latencyOf(s, metric.ITL), E2EL: latencyOf(s, metric.E2EL),
	}
	if t := s.Throughput; t != nil {
		out.RequestThroughput, out.OutputThroughput = finite(&t.RequestsPerS), finite(&t.OutputTokensPerS)
	}
	return out
}

func latencyOf(s *metric.Summary, m *metric.Metric) *flatLatency {
	stats := s.Dist(m).Stats
	if stats == nil {
		return nil
	}
	at := func(p float64) *float64 { return finite(percentileOf(stats, p)) }
	return &flatLatency{Mean: finite(&stats.Mean), P50: finite(&stats.Median), P90: at(90), P95: at(95), P99: at(99)}
}

// finite returns nil instead of NaN and infinities, which JSON cannot represent.
func finite(v *float64) *float64 {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return nil
	}
	return v
}
