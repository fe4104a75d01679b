package archive

import (
	"math"
	"strings"

	"github.com/tacho-bench/tacho/metric"
)

// llmperfKind is the summary of LLMPerf's token benchmark. Its inter-token latency is the total time of
// a request per token, which is none of our metrics and is left out.
var llmperfKind = Kind{
	Name: "llmperf", Doc: "summary JSON of llmperf's token_benchmark_ray.py",
	read: func(f *file) ([]entry, error) {
		var out []entry
		for _, d := range f.objects() {
			if d.has("results_num_completed_requests_per_min") || d.has("results", "num_completed_requests_per_min") {
				out = append(out, llmperfLevel(d)...)
			}
		}
		return out, nil
	},
}

// llmperfLevel reads the results, which are in a separate object or flattened:
// results_ttft_s_quantiles_p50.
func llmperfLevel(d doc) []entry {
	number := func(path ...string) float64 {
		flat := "results_" + strings.Join(path, "_")
		if d.has(flat) {
			return d.number(flat)
		}
		return d.number(append([]string{"results"}, path...)...)
	}
	s := newSheet("llmperf", d.text("version"))
	s.about.Model = d.text("model")
	s.level.Epoch = unixTime(d.number("timestamp"))
	completed, failed := int(number("num_completed_requests")), int(number("number_errors"))
	s.counts(completed, failed, 0)
	s.load(int(number("num_requests_started")), 0, d.whole("num_concurrent_requests"))
	perS := number("num_completed_requests_per_min") / 60
	if perS > 0 {
		s.summary().DurationS = float64(completed) / perS
	}
	input := number("number_input_tokens", "mean") * float64(completed)
	output := number("mean_output_throughput_token_per_s")
	s.summary().Tokens = metric.Tokens{Input: int(math.Round(input)), Output: int(math.Round(output * s.summary().DurationS))}
	s.throughput(perS, output, output+input/max(s.summary().DurationS, math.SmallestNonzeroFloat64))
	for _, t := range []struct {
		m   *metric.Metric
		key string
	}{{metric.TTFT, "ttft_s"}, {metric.E2EL, "end_to_end_latency_s"}} {
		stats := doc{}
		for _, name := range []string{"mean", "min", "max", "stddev"} {
			stats[name] = number(t.key, name)
		}
		for _, name := range []string{"p25", "p50", "p75", "p90", "p95", "p99"} {
			stats[name] = number(t.key, "quantiles", name)
		}
		s.dist(t.m, completed, statsOf(stats, 1000))
	}
	return s.entries("its inter-token latency is left out, because it is request time divided by tokens")
}
