package archive

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/metric"
)

// genaiBenchKind is one iteration of genai-bench. The file of the experiment beside it describes the
// setup.
var genaiBenchKind = Kind{
	Name: "genai-bench", Doc: "JSON of an iteration of genai-bench; the folder of an experiment is a sweep",
	read: func(f *file) ([]entry, error) {
		var out []entry
		for _, d := range f.objects() {
			if d.has("aggregated_metrics", "scenario") {
				out = append(out, genaiBenchLevel(d, experiment(f.path))...)
			}
		}
		return out, nil
	},
}

// experiment reads the file beside an iteration, if there is one.
func experiment(path string) doc {
	b, err := atomicfile.Read(filepath.Join(filepath.Dir(path), "experiment_metadata.json"))
	if err != nil {
		return nil
	}
	var d doc
	_ = json.Unmarshal(bytes.TrimSpace(b), &d) // missing values are left out
	return d
}

func genaiBenchLevel(d, about doc) []entry {
	s := newSheet("genai-bench", about.text("benchmark_version"))
	s.about.Backend, s.about.Model = about.text("api_backend"), about.text("api_model_name")
	s.about.Tokenizer, s.about.Label = about.text("server_model_tokenizer"), about.text("server_engine")
	a := d.object("aggregated_metrics")
	s.about.Dataset = a.text("scenario")
	millis := 1000.0
	if d.text("_time_unit") == "ms" {
		millis = 1
	}
	s.summary().DurationS = a.number("run_duration")
	completed := a.whole("num_completed_requests")
	s.counts(completed, a.whole("num_error_requests"), 0)
	s.load(a.whole("num_requests"), 0, a.whole("num_concurrency"))
	s.throughput(a.number("requests_per_second"), a.number("mean_output_throughput_tokens_per_s"), a.number("mean_total_tokens_throughput_tokens_per_s"))
	s.summary().Tokens = metric.Tokens{
		Input: a.whole("stats", "num_input_tokens", "sum"), Output: a.whole("stats", "num_output_tokens", "sum"),
	}
	for _, t := range []struct {
		m   *metric.Metric
		key string
	}{{metric.TTFT, "ttft"}, {metric.TPOT, "tpot"}, {metric.E2EL, "e2e_latency"}} {
		s.dist(t.m, completed, statsOf(a.object("stats", t.key), millis))
	}
	for _, q := range d.list("individual_request_metrics") {
		t := sheetRequest{
			ttft: q.number("ttft") * millis / 1000, last: q.number("e2e_latency") * millis / 1000,
			input: q.whole("num_input_tokens"), output: q.whole("num_output_tokens"),
		}
		if q.has("error_code") {
			t.failure = strings.TrimSpace(q.text("error_message") + " ")
			if t.failure == "" {
				t.failure = "failed"
			}
		}
		s.requests = append(s.requests, t)
	}
	s.partial = true
	return s.entries("the file has no gaps between tokens and no start times")
}
