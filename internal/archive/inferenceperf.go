package archive

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/metric"
)

// inferencePerfKind is a lifecycle report of inference-perf, for one stage or for all. It names neither
// model nor server; config.yaml beside it does.
var inferencePerfKind = Kind{
	Name: "inference-perf", Doc: "lifecycle reports of inference-perf; a folder of them is a sweep over its stages",
	Copies: []string{"summary_lifecycle_metrics.json"},
	read: func(f *file) ([]entry, error) {
		var out []entry
		for _, d := range f.objects() {
			if d.has("load_summary") && d.has("successes", "latency") {
				out = append(out, inferencePerfLevel(d, f.path)...)
			}
		}
		return out, nil
	},
}

func inferencePerfLevel(d doc, path string) []entry {
	s := newSheet("inference-perf", "")
	if b, err := atomicfile.Read(filepath.Join(filepath.Dir(path), "config.yaml")); err == nil {
		s.about.Model, s.about.Backend = yamlLine(b, "model_name"), "openai"
		if url := yamlLine(b, "base_url"); url != "" {
			s.about.URLs = []string{url}
		}
	}
	good := d.object("successes")
	completed, failed := good.whole("count"), d.whole("failures", "count")
	perS := good.number("throughput", "requests_per_sec")
	s.summary().DurationS = d.number("benchmark_time_seconds")
	if s.summary().DurationS == 0 && perS > 0 {
		s.summary().DurationS = float64(completed) / perS
	}
	s.counts(completed, failed, 0)
	s.load(d.whole("load_summary", "count"), d.number("load_summary", "requested_rate"), d.whole("load_summary", "concurrency"))
	if s.level.Concurrency > 0 { // in a closed loop the rate is a result
		s.load(s.level.Prompts, 0, s.level.Concurrency)
	}
	s.throughput(perS, good.number("throughput", "output_tokens_per_sec"), good.number("throughput", "total_tokens_per_sec"))
	s.summary().Tokens = metric.Tokens{
		Input:  int(good.number("throughput", "input_tokens_per_sec")*s.summary().DurationS + 0.5),
		Output: int(good.number("throughput", "output_tokens_per_sec")*s.summary().DurationS + 0.5),
	}
	for _, t := range []struct {
		m   *metric.Metric
		key string
	}{{metric.TTFT, "time_to_first_token"}, {metric.TPOT, "time_per_output_token"}, {metric.ITL, "inter_token_latency"}, {metric.E2EL, "request_latency"}} {
		n := completed
		if t.m.PerEvent {
			n = 0
		}
		s.dist(t.m, n, statsOf(trimmedPercentiles(good.object("latency", t.key)), 1000))
	}
	return s.entries("in its inter-token latency, tokens of one chunk have gaps of 0")
}

// yamlLine returns the text after the first occurrence of a key.
func yamlLine(b []byte, key string) string {
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == key {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return ""
}

// trimmedPercentiles keeps the percentiles that other tools have too. Percentiles below the median are
// dropped.
func trimmedPercentiles(d doc) doc {
	out := doc{}
	for k, v := range d {
		word, isP := strings.CutPrefix(k, "p")
		if p, err := strconv.ParseFloat(word, 64); !isP || err != nil || p >= 50 {
			out[k] = v
		}
	}
	return out
}
