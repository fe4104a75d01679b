package archive

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/metric"
)

// vllmKind is the result file of vLLM's serving benchmark, plain or detailed, appended or not; of
// vllm-bench, with the same keys and more; and of tacho bench --save-result.
var vllmKind = Kind{
	Name: "vllm", Doc: "JSON of vllm bench serve, vllm-bench and tacho bench --save-result, plain or detailed, one or a line each",
	read: func(f *file) ([]entry, error) {
		return eachFlat(f, func(d doc) bool { return d.has("request_throughput") && d.has("model_id") }, func(d doc) (*sheet, error) {
			tool := "vllm bench serve"
			if d.has("max_model_len") || d.has("steady_state") || d.text("mode") == "multi_turn" {
				tool = "vllm-bench"
			}
			s := newSheet(tool, "")
			s.about.Label, s.about.Model, s.about.Tokenizer = d.text("label"), d.text("model_id"), d.text("tokenizer_id")
			s.metadata(d)
			return s, nil
		})
	},
}

// A flat result has all figures in one object, with the names of vLLM's benchmark.
func eachFlat(f *file, mine func(doc) bool, begin func(doc) (*sheet, error)) ([]entry, error) {
	var out []entry
	for _, d := range f.objects() {
		if !mine(d) {
			continue
		}
		s, err := begin(d)
		if err != nil {
			return nil, err
		}
		s.flat(d)
		if err := s.flatRequests(d); err != nil {
			return nil, err
		}
		out = append(out, s.entries("")...)
	}
	return out, nil
}

// flat reads the figures of a flat result.
func (s *sheet) flat(d doc) {
	s.about.Backend = cmp.Or(s.about.Backend, d.text("backend"), d.text("endpoint_type"))
	s.level.Epoch = began(d.text("date"))
	sum := s.summary()
	sum.DurationS = d.number("duration")
	completed, failed := d.whole("completed"), d.whole("failed")
	s.counts(completed, failed, 0)
	prompts := d.whole("num_prompts")
	if prompts == 0 {
		prompts = completed + failed
	}
	s.load(prompts, d.number("request_rate"), d.whole("max_concurrency"))
	sum.Config.Burstiness = d.number("burstiness")
	sum.Tokens = metric.Tokens{Input: d.whole("total_input_tokens"), Output: d.whole("total_output_tokens")}
	s.throughput(d.number("request_throughput"), d.number("output_throughput"), cmp.Or(d.number("total_token_throughput"), d.number("total_throughput")))
	if d.has("request_goodput") {
		good := d.number("request_goodput")
		sum.Throughput.GoodPerS = &good
	}
	if d.has("max_concurrent_requests") {
		sum.Peaks = &metric.Peaks{EventsPerS: d.whole("max_output_tokens_per_s"), TouchingASecond: d.whole("max_concurrent_requests")}
	}
	for i := range metric.Sections {
		s.flatDist(d, metric.Sections[i].Metric, metric.Sections[i].Key, completed)
	}
	s.flatDist(d, metric.E2EL, "e2e_latency", completed)
}

// flatDist reads the figures of one metric: mean_ttft_ms, p99_ttft_ms.
func (s *sheet) flatDist(d doc, m *metric.Metric, key string, n int) {
	named := doc{}
	for k, v := range d {
		if statistic, ok := strings.CutSuffix(k, "_"+key+"_ms"); ok {
			named[statistic] = v
		}
	}
	if m.PerEvent {
		n = 0 // the number is unknown
	}
	stats := statsOf(named, 1)
	if stats != nil && stats.Mean == 0 && stats.Median == 0 {
		return // these tools write 0 if nothing was measured
	}
	s.dist(m, n, stats)
}

// flatRequests reads the arrays with an entry for each request.
func (s *sheet) flatRequests(d doc) error {
	ttfts := d.numbers("ttfts")
	if len(ttfts) == 0 {
		return nil
	}
	itls, _ := d.at("itls").([]any)
	errors, _ := d.at("errors").([]any)
	inputs, outputs := d.numbers("input_lens"), d.numbers("output_lens")
	starts, latencies := d.numbers("start_times"), d.numbers("latencies")
	for _, n := range []int{len(itls), len(inputs), len(outputs)} {
		if n != len(ttfts) {
			return fmt.Errorf("its lists have %d and %d requests, so the file is damaged", len(ttfts), n)
		}
	}
	for i := range ttfts {
		t := sheetRequest{ttft: ttfts[i], input: int(inputs[i]), output: int(outputs[i])}
		gaps, _ := itls[i].([]any)
		t.gaps = floats(gaps)
		if len(starts) == len(ttfts) {
			t.start = starts[i]
		}
		if len(latencies) == len(ttfts) {
			t.end = latencies[i]
		}
		if i < len(errors) {
			t.failure, _ = errors[i].(string)
		}
		s.requests = append(s.requests, t)
	}
	fromZero(s.requests)
	if failed := countFailed(s.requests); failed > 0 && s.summary().Failed == 0 {
		s.counts(s.summary().Completed, failed, 0)
	}
	return nil
}

func countFailed(requests []sheetRequest) int {
	n := 0
	for i := range requests {
		if requests[i].failure != "" {
			n++
		}
	}
	return n
}

// metadata reads the entries given by the user: texts under names that the benchmark does not use.
func (s *sheet) metadata(d doc) {
	own := []string{"date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "request_rate", "ramp_up_strategy", "mode", "goodput"}
	var names []string
	for name, value := range d {
		if _, isText := value.(string); isText && !slices.Contains(own, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		s.field(name, d[name])
	}
}
