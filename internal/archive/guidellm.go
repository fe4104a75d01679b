package archive

import (
	"bytes"
	"maps"

	"github.com/tacho-bench/tacho/metric"
)

// guidellmKind is GuideLLM's report: one run with a benchmark for each level. Its
// inter_token_latency_ms is our TPOT, the mean gap of each request, weighted by tokens. It does not
// store single gaps.
var guidellmKind = Kind{
	Name: "guidellm", Doc: "JSON of GuideLLM, of 0.3 and later",
	read: func(f *file) ([]entry, error) {
		var out []entry
		for _, d := range f.objects() {
			for _, b := range d.list("benchmarks") {
				if b.has("metrics", "request_totals") || b.has("metrics", "requests_per_second") {
					out = append(out, guidellmLevel(d, b)...)
				}
			}
		}
		return out, nil
	},
	instead: func(f *file) string {
		// Its columns have three rows of titles, which change between versions.
		if bytes.HasPrefix(f.bytes, []byte("Run Info,")) {
			return "benchmarks.json of the same run"
		}
		return ""
	},
}

func guidellmLevel(d, b doc) []entry {
	s := newSheet("guidellm", d.text("metadata", "guidellm_version"))
	backend := b.object("config", "backend")
	s.about.Backend, s.about.Model = backend.text("request_format"), backend.text("model")
	if target := backend.text("target"); target != "" {
		s.about.URLs = []string{target}
	}
	s.about.Tokenizer = d.text("config", "spec", "tokenizer", "model")
	for _, data := range d.list("config", "spec", "data") {
		s.about.Dataset = data.text("kind")
	}
	s.level.Epoch = unixTime(b.number("start_time"))
	m := b.object("metrics")
	sum := s.summary()
	sum.DurationS = b.number("duration")
	good, bad, cut := m.whole("request_totals", "successful"), m.whole("request_totals", "errored"), m.whole("request_totals", "incomplete")
	s.counts(good, bad, cut)
	strategy := b.object("config", "strategy")
	s.load(m.whole("request_totals", "total"), strategy.number("rate"), strategy.whole("streams"))
	mean := func(name string) float64 { return m.number(name, "successful", "mean") }
	s.throughput(mean("requests_per_second"), mean("output_tokens_per_second"), mean("tokens_per_second"))
	sum.Tokens = metric.Tokens{
		Input: m.whole("prompt_token_count", "successful", "total_sum"), Output: m.whole("output_token_count", "successful", "total_sum"),
	}
	for _, t := range []struct {
		m     *metric.Metric
		key   string
		scale float64
	}{{metric.TTFT, "time_to_first_token_ms", 1}, {metric.TPOT, "inter_token_latency_ms", 1}, {metric.E2EL, "request_latency", 1000}} {
		of := m.object(t.key, "successful")
		s.dist(t.m, good, guidellmStats(of, t.scale))
	}
	for _, status := range []string{"successful", "errored"} {
		for _, q := range b.list("requests", status) {
			s.requests = append(s.requests, guidellmRequest(q, status))
		}
	}
	fromZero(s.requests)
	s.partial = true
	return s.entries("TPOT is its inter-token latency, because its own TPOT includes the first token; ITL is missing")
}

// guidellmStats reads percentiles by GuideLLM's names.
func guidellmStats(d doc, scale float64) *metric.Stats {
	if d.whole("count") == 0 {
		return nil
	}
	flat := doc{}
	maps.Copy(flat, d)
	names := map[string]string{"p001": "p0.1", "p01": "p1", "p05": "p5", "p999": "p99.9"}
	for k, v := range d.object("percentiles") {
		if name, renamed := names[k]; renamed {
			k = name
		}
		flat[k] = v
	}
	return statsOf(flat, scale)
}

func guidellmRequest(q doc, status string) sheetRequest {
	timing := q.object("info", "timings")
	start := timing.number("request_start")
	since := func(key string) float64 {
		if !timing.has(key) {
			return 0
		}
		return timing.number(key) - start
	}
	t := sheetRequest{
		start: start, ttft: since("first_token_iteration"), last: since("last_token_iteration"), end: since("request_end"),
		input: q.whole("prompt_tokens"), output: q.whole("output_tokens"),
	}
	if status != "successful" {
		t.failure = q.text("info", "error")
		if t.failure == "" {
			t.failure = status
		}
	}
	return t
}
