package instrument

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/sim/step"
)

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		page string
		want map[Quantity]float64
		bad  bool
	}{
		"vllm, two engines": {`# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a}\"b"} 3.0
vllm:num_requests_running{engine="1",model_name="a"} 4 1700000000000
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.5
vllm:request_success_total{finished_reason="stop"} 1
vllm:request_success_total{finished_reason="length"} 2
vllm:corrupted_requests_total{engine="0"} 1
vllm:corrupted_requests_total{engine="1"} 3
vllm:admission_rejections_total{reason="full"} 5
vllm:time_to_first_token_seconds_bucket{le="+Inf"} 7
vllm:time_to_first_token_seconds_sum 1.5e-1
vllm:num_requests_running_created{engine="0"} 1.7e9
`, map[Quantity]float64{running: 7, kvShare: 0.5, finished: 3, corrupted: 4, rejected: 5, ttftSum: 0.15}, false},
		"dcgm":        {"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 50\r\nDCGM_FI_DEV_GPU_UTIL{gpu=\"1\"} 100\r\nDCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 300.5\nDCGM_FI_DEV_POWER_USAGE{gpu=\"1\"} 200\nDCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION 5000\n", map[Quantity]float64{gpuShare: 0.75, powerWatts: 500.5, energyJoules: 5}, false},
		"no number":   {"vllm:num_requests_running NaN\nvllm:num_requests_waiting +Inf\nvllm:prompt_tokens_total 5\n", map[Quantity]float64{promptTokens: 5}, false},
		"half broken": {"vllm:num_requests_running{a=\"b 3\nvllm:num_requests_waiting 2\n", map[Quantity]float64{queued: 2}, false},
		"empty":       {"", map[Quantity]float64{}, false},
		"a web page":  {"<html>\n<title>Log in</title>\n</html>\n", map[Quantity]float64{}, true},
		"JSON":        {`[{"iter": 1}]`, map[Quantity]float64{}, true},
	} {
		got, err := read([]byte(tc.page))
		if diff := cmp.Diff(tc.want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" || (err != nil) != tc.bad {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("a{b=\"c\"} 1 2\n# x\nvllm:num_requests_running 5\n"))
	f.Add([]byte("{\"a\"} 1\na{\\\na{}\n} 1"))
	f.Fuzz(func(t *testing.T, page []byte) {
		lines := strings.Count(string(page), "\n") + 1
		n := 0
		err := parse(page, func(r reading) {
			if r.name == "" || strings.ContainsAny(r.name, "{ \t\n") {
				t.Errorf("a name %q", r.name)
			}
			n++
		})
		if n > lines || n > 0 && err != nil {
			t.Errorf("%d readings of %d lines, %v", n, lines, err)
		}
		for q, v := range must.Get(read(page))(t) {
			if math.IsNaN(v) {
				t.Errorf("%s is no number", q)
			}
		}
	})
}

func TestSummarize(t *testing.T) {
	at := func(s int, values map[Quantity]float64) Sample {
		return Sample{Target: "a", At: time.Duration(s) * time.Second, Values: values}
	}
	got := Summarize([]Sample{
		at(0, map[Quantity]float64{running: 1, promptTokens: 100, cachedTokens: 10, generatedTokens: 50, ttftSum: 2, ttftCount: 4, powerWatts: 100}),
		{Target: "b", Error: "status 500"},
		at(1, map[Quantity]float64{running: 5, promptTokens: 200, cachedTokens: 30, generatedTokens: 90, ttftSum: 3, ttftCount: 6, powerWatts: 300}),
		{Target: "a", Error: "hung", At: 2},
		{Target: "a", Error: "again", At: 3},
		// The server was restarted: its whole count is new.
		at(4, map[Quantity]float64{running: 3, promptTokens: 40, cachedTokens: 8, generatedTokens: 20, ttftSum: 1, ttftCount: 2, powerWatts: 100}),
	}, 4)
	of := func(v float64) *float64 { return &v }
	want := []metric.Instruments{{
		Target: "a", Scrapes: 3, Failed: 2, Problem: "hung",
		Running: &metric.Gauge{Mean: of(4), Max: of(5)}, PromptTokens: of(140), GenerationTokens: of(60), PrefixHitShare: of(0.2),
		TTFTMillis: of(500), PowerWatts: &metric.Gauge{Mean: of(200), Max: of(300)}, EnergyJoules: of(200 + 600),
	}, {Target: "b", Failed: 1, Problem: "status 500"}}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Readings before and after a stage do not count for its gauges.
func TestGaugesOfAShortStage(t *testing.T) {
	at := func(ms int, n float64) Sample {
		return Sample{Target: "a", At: time.Duration(ms) * time.Millisecond, Values: map[Quantity]float64{running: n, finished: n}}
	}
	short := Summarize([]Sample{at(0, 0), at(500, 7), at(700, 9)}, 0.6)
	if g := short[0].Running; g == nil || g.Mean != nil || g.Max != nil || *short[0].Finished != 9 {
		t.Errorf("of one reading inside: %+v", short[0])
	}
	long := Summarize([]Sample{at(0, 0), at(500, 7), at(600, 8), at(700, 9)}, 0.6)
	if g := long[0].Running; g == nil || *g.Mean != 7.5 || *g.Max != 8 {
		t.Errorf("of two readings inside: %+v", g)
	}
}

// serve runs an in-memory server and returns a client. It is for synctest bubbles.
func serve(t *testing.T, h http.Handler) *http.Client {
	t.Helper()
	network := memnet.Listen()
	srv := &http.Server{Handler: h}
	var served sync.WaitGroup
	served.Go(func() { _ = srv.Serve(network) })
	client := &http.Client{Transport: &http.Transport{DialContext: network.Dial}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		_ = srv.Close()
		served.Wait()
	})
	return client
}

// Readings before a stage are the start values of its counters, and their pages are
// not read again at the start. A page that was missing before is read.
func TestBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count, reads atomic.Int32
		client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/late" && count.Load() < 30 {
				http.NotFound(w, r)
				return
			}
			reads.Add(1)
			_, _ = fmt.Fprintf(w, "vllm:prompt_tokens_total %d\n", count.Load())
		}))
		targets := []Target{{URL: "http://127.0.0.1/late"}, {URL: "http://127.0.0.1/metrics", Optional: true}}
		count.Store(10)
		before := Before(t.Context(), client, targets)
		if len(before) != 1 || before[0].At != 0 || reads.Load() != 1 {
			t.Fatalf("%+v after %d readings", before, reads.Load())
		}
		count.Store(30)
		scraper := Start(t.Context(), client, targets, time.Hour, time.Now(), before)
		synctest.Wait() // the late page was read, and the other was not read again
		got := Summarize(scraper.Stop(), 1)
		if len(got) != 2 || got[0].Target != targets[1].URL || got[0].Scrapes != 2 || got[0].PromptTokens == nil || *got[0].PromptTokens != 20 {
			t.Errorf("%+v", got)
		}
		if len(got) == 2 && (got[1].Scrapes != 2 || got[1].PromptTokens == nil || *got[1].PromptTokens != 0) {
			t.Errorf("of the late one %+v", got[1])
		}
	})
}

// Drafts are counted by position; diffusion canvases as one.
func TestDrafting(t *testing.T) {
	page := func(n int) Sample {
		values := must.Get(read(fmt.Appendf(nil, `vllm:spec_decode_num_drafts_total{engine="0"} %d
vllm:spec_decode_num_draft_tokens_total{engine="0"} %d
vllm:spec_decode_num_accepted_tokens_total{engine="0"} %d
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} %d
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="1",position="0"} 1
vllm:spec_decode_num_accepted_tokens_per_pos_total{position="1",engine="0"} %d
vllm:spec_decode_num_accepted_tokens_per_pos_total{position="999999999"} 1
vllm:spec_decode_num_accepted_tokens_per_pos_total{position="x"} 1
vllm:spec_decode_num_accepted_tokens_per_pos_total 1
vllm:diffusion_num_denoising_steps_total %d
vllm:diffusion_num_canvas_positions_total %d
vllm:diffusion_num_committed_tokens_total %d
`, 4*n, 8*n, 6*n, 4*n, 2*n, 9*n, 9*32*n, 2*32*n)))(t)
		return Sample{Target: "a", Values: values}
	}
	got := Summarize([]Sample{page(1), page(3)}, 1)
	want := []metric.Instruments{{
		Target: "a", Scrapes: 2, Speculation: &metric.Speculation{Drafts: 8, DraftTokens: 16, Accepted: 12, AcceptedAt: []float64{8, 4}},
		Diffusion: &metric.Diffusion{Steps: 18, Positions: 576, Committed: 128},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if still := Summarize([]Sample{page(1), page(1)}, 1); still[0].Speculation != nil || still[0].Diffusion != nil {
		t.Errorf("of counters that stand still: %+v", still)
	}
}

// The scraped metrics of the simulator agree with its truth log.
func TestTruth(t *testing.T) {
	for _, engine := range sim.Engines() {
		t.Run(engine, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { scrapeSim(t, engine) })
		})
	}
}

func scrapeSim(t *testing.T, engine string) {
	s := must.Get(sim.New(sim.Options{Engine: engine, Profile: &step.Profile{
		Policy: "chunked", MaxSequences: 2, StepTokens: 64, KV: step.KV{BlockTokens: 4, Blocks: 100, PrefixCache: true},
		Output: step.Lengths{Mean: 20, Max: 64},
		Cost:   step.Cost{Step: []step.Knot{{Tokens: 1, Ms: 100}}, Prefill: []step.Knot{{Tokens: 1, Ms: 500}}},
	}}))(t)
	t.Cleanup(func() { _ = s.Close() })
	client := serve(t, s)
	path := "/metrics"
	if engine == "trtllm" {
		path = "/prometheus/metrics"
	}
	scraper := Start(t.Context(), client, []Target{{URL: "http://127.0.0.1" + path}}, time.Second, time.Now(), nil)
	synctest.Wait() // for the first page
	var requests sync.WaitGroup
	for i := range 5 {
		requests.Go(func() { generate(t, client, i) })
	}
	requests.Wait()
	samples := scraper.Stop()
	in := Summarize(samples, samples[len(samples)-1].At.Seconds())[0]
	if !slices.Contains([]string{"vllm", "sglang", "tgi", "llamacpp", "trtllm"}, engine) { // these servers have no metrics
		if in.Scrapes != 0 || in.Failed == 0 || in.Problem != "status 404" {
			t.Errorf("%+v", in)
		}
		return
	}
	var want struct{ prompt, output, cached, ttft, e2e float64 }
	truths := s.Truth()
	for _, x := range truths {
		want.prompt += float64(x.Input)
		want.output += float64(x.Output)
		want.cached += float64(x.Cached)
		want.ttft += float64(x.Writes[0]-x.Arrival) / 1e6 / float64(len(truths))
		want.e2e += float64(x.Writes[len(x.Writes)-1]-x.Arrival) / 1e6 / float64(len(truths))
	}
	check := func(what string, got *float64, want float64, has bool) {
		if (got != nil) != has {
			t.Errorf("%s: present %v, want %v", what, got != nil, has)
		} else if has && math.Abs(*got-want) > 1e-6*want {
			t.Errorf("%s: %v, the truth is %v", what, *got, want)
		}
	}
	if len(truths) != 5 || in.Failed != 0 || in.Scrapes < 3 {
		t.Fatalf("%d requests, %+v", len(truths), in)
	}
	check("prompt tokens", in.PromptTokens, want.prompt, true)
	check("generated tokens", in.GenerationTokens, want.output, true)
	check("TTFT", in.TTFTMillis, want.ttft, engine != "tgi" && engine != "llamacpp")
	check("E2EL", in.E2ELMillis, want.e2e, engine != "llamacpp")
	if in.Running == nil || *in.Running.Max != 2 || in.Queued == nil || *in.Queued.Max < 1 || *in.Queued.Max > 3 {
		t.Errorf("running %+v, queued %+v: two of five run at once", in.Running, in.Queued)
	}
	if at := samples[len(samples)-1].At; at < time.Second {
		t.Errorf("the last page was read at %v", at)
	}
}

// The names of LMDeploy's page, which the simulator does not have.
func TestLMDeployPage(t *testing.T) {
	const page = `lmdeploy:num_requests_running 2
lmdeploy:num_requests_waiting 1
lmdeploy:gpu_cache_usage_perc 0.5
lmdeploy:prefix_cache_hit_rate 0.25
lmdeploy:prompt_tokens_total 30
lmdeploy:cached_tokens_total 7
lmdeploy:generation_tokens_total 60
lmdeploy:request_success_total 4
lmdeploy:time_to_first_token_seconds_sum 0.4
lmdeploy:time_to_first_token_seconds_count 4
lmdeploy:time_per_output_token_seconds_sum 0.04
lmdeploy:time_per_output_token_seconds_count 4
lmdeploy:e2e_request_latency_seconds_sum 1.2
lmdeploy:e2e_request_latency_seconds_count 4
lmdeploy:request_queue_time_seconds_sum 0.08
lmdeploy:request_queue_time_seconds_count 4
lmdeploy:request_prefill_time_seconds_sum 0.12
lmdeploy:request_prefill_time_seconds_count 4
lmdeploy:request_decode_time_seconds_sum 0.16
lmdeploy:request_decode_time_seconds_count 4
lmdeploy:request_inference_time_seconds_sum 0.28
lmdeploy:request_inference_time_seconds_count 4
`
	synctest.Test(t, func(t *testing.T) {
		pages := []string{regexp.MustCompile(`(?m) \S+$`).ReplaceAllString(page, " 0"), page}
		client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, pages[0])
			pages = pages[len(pages)-1:]
		}))
		s := Start(t.Context(), client, []Target{{URL: "http://127.0.0.1/metrics"}}, time.Second, time.Now(), nil)
		time.Sleep(2500 * time.Millisecond)
		got, err := json.Marshal(Summarize(s.Stop(), 2.5)[0])
		const want = `{"target":"http://127.0.0.1/metrics","scrapes":4,"running":{"mean":2,"max":2},"queued":{"mean":1,"max":1},"kv_share":{"mean":0.5,"max":0.5},` +
			`"prompt_tokens":30,"generation_tokens":60,"finished":4,"prefix_hit_share":0.23333333333333334,"ttft_ms":100,"queue_ms":20,"tpot_ms":10,"e2el_ms":300,` +
			`"prefill_ms":30,"decode_ms":40,"inference_ms":70,"timed":4}`
		if string(got) != want || err != nil {
			t.Errorf("%v %s, want %s", err, got, want)
		}
	})
}

func generate(t *testing.T, client *http.Client, i int) {
	body := fmt.Sprintf(`{"prompt":"one two three four five six seven eight %d","max_tokens":%d,"ignore_eos":true,"stream":true}`, i, 5+i)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/v1/completions", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// A missing optional page is not reported; an optional page that disappears is.
func TestOptionalPages(t *testing.T) {
	for name, tc := range map[string]struct {
		pages []string // one after the other; an empty page is a 404
		want  []metric.Instruments
	}{
		"never there":    {[]string{"", "vllm:num_requests_running 1\n"}, nil},
		"there and gone": {[]string{"vllm:num_requests_running 1\n", ""}, []metric.Instruments{{Scrapes: 1, Failed: 1, Problem: "status 404", Running: &metric.Gauge{}}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if n++; n > len(tc.pages) || tc.pages[n-1] == "" {
					http.NotFound(w, r)
					return
				}
				_, _ = io.WriteString(w, tc.pages[n-1])
			}))
			s := Start(t.Context(), client, []Target{{URL: "http://127.0.0.1/metrics", Optional: true}}, time.Minute, time.Now(), nil)
			time.Sleep(time.Second)
			got := Summarize(s.Stop(), 1)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(metric.Instruments{}, "Target")); diff != "" {
				t.Errorf("%s, %d pages asked for (-want +got):\n%s", name, n, diff)
			}
		})
	}
}

// A page that hangs or is invalid is only a gap, and the scraper still stops.
func TestBadPages(t *testing.T) {
	for name, tc := range map[string]struct {
		serve   http.HandlerFunc
		problem string
	}{
		"garbage": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("\x00\xff{{{\n\"")) }, "not a metrics page"},
		"unknown": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("go_goroutines 5\n")) }, "without known metrics"},
		"error":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "status 500"},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("vllm:num_requests_running 5\n"))
		}, "EOF"},
		"hang": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline"},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			s := Start(t.Context(), serve(t, tc.serve), []Target{{URL: "http://127.0.0.1/metrics"}}, time.Hour, began, nil)
			in := Summarize(s.Stop(), 1)
			if took := time.Since(began); took > briefTimeout {
				t.Errorf("%s: it stopped after %v", name, took)
			}
			if len(in) != 1 || in[0].Scrapes != 0 || in[0].Failed == 0 || !strings.Contains(in[0].Problem, tc.problem) {
				t.Errorf("%s: %+v", name, in)
			}
		})
	}
}

// For an old run of vLLM without prefill and decode times, decode is computed from
// the gaps. A server whose gaps include its front end has no decode time.
func TestDecodeOfAKeptRun(t *testing.T) {
	b := must.Get(os.ReadFile("testdata/vllm-0.24-h200-burst-256.jsonl"))(t)
	var samples []Sample
	for line := range bytes.Lines(b) {
		var s Sample
		must.Do(t, json.Unmarshal(line, &s))
		samples = append(samples, s)
	}
	in := Summarize(samples, 4)[0]
	perToken := *in.DecodeMillis / 149
	if *in.Timed != 256 || perToken < 11.4 || perToken > 11.5 || in.PrefillMillis != nil || in.InferenceMillis != nil {
		t.Errorf("%v requests, %v ms a token, prefill %v", *in.Timed, perToken, in.PrefillMillis)
	}
	for i := range samples {
		delete(samples[i].Values, prefixQueries)
	}
	if in := Summarize(samples, 4)[0]; in.DecodeMillis != nil {
		t.Errorf("decode %v of gaps that may be the front end's", *in.DecodeMillis)
	}
	for i := range samples {
		samples[i].Values[prefillSum], samples[i].Values[prefillCount] = 0.5*float64(i), float64(i)
		samples[i].Values[decodeSum], samples[i].Values[decodeCount] = 2*float64(i), float64(i)
		samples[i].Values[inferenceSum], samples[i].Values[inferenceCount] = 2.5*float64(i), float64(i)
	}
	if in := Summarize(samples, 4)[0]; *in.PrefillMillis != 500 || *in.DecodeMillis != 2000 || *in.InferenceMillis != 2500 {
		t.Errorf("prefill %v, decode %v, both %v", *in.PrefillMillis, *in.DecodeMillis, *in.InferenceMillis)
	}
}
