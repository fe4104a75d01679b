package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
)

func each(list []*tacho.Record) iter.Seq2[*tacho.Record, error] {
	return func(yield func(*tacho.Record, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// vllmResult returns a result with every possible key.
func vllmResult() *report.VLLMResult {
	stage := fullStage()
	list := records(6)
	list[1].Text = "quote \" slash \\ tab \t bell \a é € 😀 \u007f \xff"
	list[2].Failure = &tacho.Failure{Cause: tacho.Truncated, Message: "no [DONE]"}
	list[3].Failure, list[3].Events, list[3].Sent = &tacho.Failure{Cause: tacho.Refused, Message: "refused"}, nil, tacho.Never
	slices.Reverse(list) // requests finish in any order
	epoch := time.Date(2025, 11, 13, 17, 16, 28, 0, time.UTC)
	stage.Epoch, stage.Monotonic, stage.Prompts, stage.Records = epoch, 1000.5, 40, func() iter.Seq2[*tacho.Record, error] { return each(list) }
	stage.Ramp = &outcome.Ramp{Strategy: "linear", StartRPS: 1, EndRPS: 20, Changes: []outcome.RateChange{{RPS: 1, At: 123456 * time.Microsecond}, {RPS: 2, At: time.Second}}}
	run := &outcome.Run{About: outcome.About{
		Backend: "openai", Model: "Qwen/Qwen3-32B", Metadata: []outcome.Field{{Name: "gpu", Value: "none"}, {Name: "note", Value: "a\nb"}},
	}}
	return report.NewVLLMResult(run, &stage, true)
}

func writeResult(t *testing.T, v *report.VLLMResult) string {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, v.Write(&b))
	return b.String()
}

// keysOf returns the keys of a JSON object, in order.
func keysOf(t *testing.T, text string) []string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	must.Get(dec.Token())(t)
	var keys []string
	for dec.More() {
		key := must.Get(dec.Token())(t)
		keys = append(keys, key.(string))
		var value any
		must.Do(t, dec.Decode(&value))
	}
	return keys
}

func TestVLLMResultKeys(t *testing.T) {
	full := strings.Fields(`date endpoint_type backend label model_id tokenizer_id num_prompts gpu note
		request_rate burstiness max_concurrency ramp_up_strategy ramp_up_start_rps ramp_up_end_rps
		duration completed failed total_input_tokens total_output_tokens request_throughput request_goodput
		output_throughput total_token_throughput
		input_lens output_lens ttfts itls latencies start_times queue_times generated_texts errors
		max_output_tokens_per_s max_concurrent_requests rtfx
		probe_completed probe_failed probe_median_e2el_ms probe_p99_e2el_ms probe_max_e2el_ms
		rps_change_events
		mean_ttft_ms median_ttft_ms std_ttft_ms p99.9_ttft_ms p50_ttft_ms
		mean_tpot_ms median_tpot_ms std_tpot_ms p99.9_tpot_ms p50_tpot_ms
		mean_itl_ms median_itl_ms std_itl_ms p99.9_itl_ms p50_itl_ms
		mean_e2el_ms median_e2el_ms std_e2el_ms p99.9_e2el_ms p50_e2el_ms
		mean_client_queue_time_ms median_client_queue_time_ms std_client_queue_time_ms p99.9_client_queue_time_ms p50_client_queue_time_ms
		mean_e2el_including_client_queue_ms median_e2el_including_client_queue_ms std_e2el_including_client_queue_ms
		p99.9_e2el_including_client_queue_ms p50_e2el_including_client_queue_ms`)
	plain := strings.Fields(`date endpoint_type backend label model_id tokenizer_id num_prompts
		request_rate burstiness max_concurrency
		duration completed failed total_input_tokens total_output_tokens request_throughput request_goodput
		output_throughput total_token_throughput latencies queue_times max_output_tokens_per_s max_concurrent_requests rtfx
		mean_ttft_ms median_ttft_ms std_ttft_ms p99_ttft_ms mean_tpot_ms median_tpot_ms std_tpot_ms p99_tpot_ms
		mean_itl_ms median_itl_ms std_itl_ms p99_itl_ms`)
	if diff := cmp.Diff(full, keysOf(t, writeResult(t, vllmResult()))); diff != "" {
		t.Errorf("full: -want +got\n%s", diff)
	}
	summary := summarize(metric.DefaultConfig(), records(3))
	if diff := cmp.Diff(plain, keysOf(t, writeResult(t, report.NewVLLMResult(&outcome.Run{}, &outcome.Level{Summary: summary, Records: func() iter.Seq2[*tacho.Record, error] { return each(records(3)) }}, false)))); diff != "" {
		t.Errorf("plain: -want +got\n%s", diff)
	}
}

func TestVLLMResultGolden(t *testing.T) {
	golden(t, "vllm-full", writeResult(t, vllmResult()))
	summary := summarize(metric.DefaultConfig(), nil)
	golden(t, "vllm-empty", writeResult(t, report.NewVLLMResult(&outcome.Run{About: outcome.About{Backend: "vllm"}}, &outcome.Level{Summary: summary}, false)))
}

// The detailed arrays have one entry per request, in the order of the workload.
func TestVLLMResultDetails(t *testing.T) {
	var got struct {
		InputLens  []int       `json:"input_lens"`
		OutputLens []int       `json:"output_lens"`
		TTFTs      []float64   `json:"ttfts"`
		ITLs       [][]float64 `json:"itls"`
		Latencies  []float64   `json:"latencies"`
		QueueTimes []float64   `json:"queue_times"`
		StartTimes []float64   `json:"start_times"`
		Texts      []string    `json:"generated_texts"`
		Errors     []string    `json:"errors"`
	}
	want := got
	must.Do(t, json.Unmarshal([]byte(writeResult(t, vllmResult())), &got))
	want.InputLens = []int{100, 101, 100, 101, 100, 101}
	want.OutputLens = []int{1, 2, 0, 0, 5, 1}
	want.TTFTs = []float64{0.025, 0.026, 0.027, 0, 0.029, 0.030}
	want.ITLs = [][]float64{{}, {0.010}, {0.010, 0.011}, {}, {0.010, 0.011, 0.012, 0.013}, {}}
	want.Latencies = []float64{0.025, 0.036, 0, 0, 0.075, 0.030}
	want.QueueTimes = []float64{0.00025, 0.00025, 0.00025, 0.0001, 0.00025, 0.00025}
	want.StartTimes = []float64{1000.50025, 1000.55025, 1000.60025, 1000.6501, 1000.70025, 1000.75025}
	want.Texts = []string{"text 0", "quote \" slash \\ tab \t bell \a é € 😀 \u007f \ufffd", "text 2", "text 3", "text 4", "text 5"}
	want.Errors = []string{"", "", "truncated: no [DONE]", "refused: refused", "", ""}
	near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// The server's own times follow the arrays of vLLM 0.33, in seconds. They are absent if no answer has any.
func TestVLLMResultServerTimes(t *testing.T) {
	v := vllmResult()
	of := v.Records
	v.Records = func() iter.Seq2[*tacho.Record, error] {
		return func(yield func(*tacho.Record, error) bool) {
			for r, err := range of() {
				if one := *r; r.Session == 1 {
					one.Server = &tacho.ServerTimes{Queue: 20 * time.Millisecond, TTFT: 50 * time.Millisecond}
					r = &one
				}
				if !yield(r, err) {
					return
				}
			}
		}
	}
	text := writeResult(t, v)
	want := `"server_queue_times": [null, 0.02, null, null, null, null], "server_ttfts": [null, 0.05, null, null, null, null]`
	if !strings.Contains(text, want) {
		t.Errorf("%s is missing in %s", want, text)
	}
	keys := keysOf(t, text)
	if at := slices.Index(keys, "server_queue_times"); at < 1 || keys[at-1] != "rtfx" {
		t.Errorf("the arrays do not follow rtfx: %v", keys)
	}
	if v.Detailed = false; strings.Contains(writeResult(t, v), "server_ttfts") {
		t.Error("the arrays are in a file without details")
	}
}

func TestVLLMResultRecordsFail(t *testing.T) {
	v := vllmResult()
	broken := errors.New("record 7 is broken")
	v.Records = func() iter.Seq2[*tacho.Record, error] {
		return func(yield func(*tacho.Record, error) bool) { yield(nil, broken) }
	}
	if err := v.Write(&bytes.Buffer{}); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

func TestVLLMFileName(t *testing.T) {
	date := time.Date(2025, 11, 13, 17, 16, 28, 0, time.UTC)
	for want, c := range map[string]struct {
		about outcome.About
		level outcome.Level
	}{
		"openai-infqps-Qwen3-32B-20251113-171628.json": {outcome.About{Backend: "openai", Model: "Qwen/Qwen3-32B"}, outcome.Level{}},
		"mine-10.0qps-concurrency8-m-20251113-171628.json": {
			outcome.About{Backend: "openai", Label: "mine", Model: "m"},
			outcome.Level{Summary: metric.Summary{Config: metric.Config{RequestRate: 10, MaxConcurrency: 8}}},
		},
		"vllm-ramp-up-linear-1qps-5qps-m-20251113-171628.json": {
			outcome.About{Backend: "vllm", Model: "m"}, outcome.Level{Setting: outcome.Setting{Ramp: &outcome.Ramp{Strategy: "linear", StartRPS: 1, EndRPS: 5}}},
		},
		"..-..-x-infqps-m-20251113-171628.json": {outcome.About{Label: "../../x", Model: "a/m"}, outcome.Level{}},
	} {
		c.level.Epoch = date
		v := report.NewVLLMResult(&outcome.Run{About: c.about}, &c.level, false)
		if got := v.FileName(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A detailed result contains every token time in the order of the workload, without all
// of them in memory at once.
func TestDetailedResultStreams(t *testing.T) {
	const requests, tokens, flight = 1024, 800, 8
	most := uint64(0)
	level := healthyStage()
	level.Records = func() iter.Seq2[*tacho.Record, error] {
		return func(yield func(*tacho.Record, error) bool) {
			for i := range requests {
				session := i ^ (flight - 1) // the last request in flight ends first
				r := &tacho.Record{Session: uint64(session), Timeline: tacho.NewTimeline(0), Text: fmt.Sprint("text ", session)}
				for k := range tokens {
					r.Events = append(r.Events, tacho.Event{At: time.Duration(session*k) * ms})
				}
				if !yield(r, nil) {
					return
				}
				if i%256 == 0 {
					var m runtime.MemStats
					runtime.GC()
					runtime.ReadMemStats(&m)
					most = max(most, m.HeapAlloc)
				}
			}
		}
	}
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	file := must.Get(os.Create(filepath.Join(t.TempDir(), "result.json")))(t)
	defer func() { _ = file.Close() }()
	must.Do(t, report.NewVLLMResult(&outcome.Run{}, &level, true).Write(file))
	if grown, all := int(most-before.HeapAlloc), 8*requests*tokens; grown > all/4 {
		t.Errorf("%d bytes in memory; all times take %d", grown, all)
	}
	text := must.Get(os.ReadFile(file.Name()))(t)
	var got struct {
		Itls  [][]float64
		Texts []string `json:"generated_texts"`
	}
	must.Do(t, json.Unmarshal(text, &got))
	if len(got.Itls) != requests || len(got.Texts) != requests {
		t.Fatalf("%d lists of times and %d texts", len(got.Itls), len(got.Texts))
	}
	for session, gaps := range got.Itls {
		if len(gaps) != tokens-1 || gaps[7] != float64(session)/1000 || got.Texts[session] != fmt.Sprint("text ", session) {
			t.Fatalf("request %d: %d gaps, %v, %q", session, len(gaps), gaps[7], got.Texts[session])
		}
	}
}

// Several levels are an array and one level is an object, so a file is always one JSON
// document. If a level has no number of prompts, num_prompts is the number of its
// requests.
func TestVLLMLevels(t *testing.T) {
	format := must.Get(report.FormatNamed("vllm"))(t)
	render := func(levels int) []byte {
		t.Helper()
		run := outcome.Run{}
		for range levels {
			level := healthyStage()
			level.Prompts = 0
			run.Levels = append(run.Levels, level)
		}
		var out bytes.Buffer
		must.Do(t, format.Render(&out, &report.Report{Runs: []outcome.Run{run}}))
		return out.Bytes()
	}
	type result struct {
		Prompts int `json:"num_prompts"`
	}
	sent := healthyStage().Summary.Requests
	for _, n := range []int{0, 2, 3} {
		var got []result
		if err := json.Unmarshal(render(n), &got); err != nil || len(got) != n {
			t.Errorf("%d levels: %d objects, %v", n, len(got), err)
		}
		for _, r := range got {
			if r.Prompts != sent || sent == 0 {
				t.Errorf("%d prompts, sent %d", r.Prompts, sent)
			}
		}
	}
	var one result
	if err := json.Unmarshal(render(1), &one); err != nil || one.Prompts != sent {
		t.Errorf("one level: %+v, %v", one, err)
	}
}
