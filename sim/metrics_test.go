package sim

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

func get(t *testing.T, c *http.Client, path string) (int, []byte) {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil))(t)
	res, err := c.Do(req)
	must.Do(t, err)
	defer res.Body.Close()
	body := must.Get(io.ReadAll(res.Body))(t)
	return res.StatusCode, body
}

// sample is the value of one line of a metrics page, or -1 if the line is missing.
func sample(page []byte, name, labels string) float64 {
	in := bufio.NewScanner(bytes.NewReader(page))
	for in.Scan() {
		series, value, _ := strings.Cut(in.Text(), " ")
		if strings.HasPrefix(series, name+"{") && strings.Contains(series, labels) {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return -1
			}
			return v
		}
	}
	return -1
}

// The metrics during and after a load agree with the truth log.
func TestMetricsMatchTruth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testProfile()
		p.MaxSequences = 2
		p.Output.Mean = 5
		p.KV.BlockTokens = 2 // so that the prompt of three tokens has one full block
		s, c := start(t, Options{Profile: p, Model: "m"})
		for range 3 {
			go talk(t, c, "http://127.0.0.1", "")
		}
		time.Sleep(105 * time.Millisecond) // during the step that decodes the first and prefills the second
		_, page := get(t, c, "/metrics")
		l := s.model.load()
		for name, want := range map[string]float64{
			"vllm:num_requests_running":    2,
			"vllm:num_requests_waiting":    1,
			"vllm:kv_cache_usage_perc":     l.kvShare(),
			"vllm:generation_tokens_total": float64(s.counters.generated.Load()),
		} {
			if got := sample(page, name, `model_name="m"`); got != want {
				t.Errorf("under load %s is %v, want %v", name, got, want)
			}
		}
		if l.kvUsed == 0 || s.counters.generated.Load() == 0 {
			t.Error("nothing was going on")
		}
		time.Sleep(10 * time.Second)
		go talk(t, c, "http://127.0.0.1", "truncate")
		time.Sleep(10 * time.Second)
		_, page = get(t, c, "/metrics")
		var ttft, itl float64
		var tokens, prompt, cached, gaps int
		for _, x := range s.Truth() {
			tokens += x.Output
			prompt += x.Input
			cached += x.Cached
			ttft += float64(x.Writes[0]-x.Arrival) / 1e9
			itl += float64(x.Last-x.First) / 1e9
			gaps += len(x.Writes) - 1 // one for each step
		}
		if cached == 0 {
			t.Error("nothing was cached")
		}
		for _, tt := range []struct {
			name, labels string
			want         float64
		}{
			{"vllm:prefix_cache_hits_total", "", float64(cached)},
			{"vllm:prefix_cache_queries_total", "", float64(prompt)},
			{"vllm:num_requests_running", "", 0},
			{"vllm:num_requests_waiting", "", 0},
			{"vllm:generation_tokens_total", "", float64(tokens)},
			{"vllm:prompt_tokens_total", "", float64(prompt)},
			{"vllm:prompt_tokens_cached_total", "", float64(cached)},
			{"vllm:request_success_total", `finished_reason="stop"`, 3},
			{"vllm:request_success_total", `finished_reason="abort"`, 1},
			{"vllm:time_to_first_token_seconds_count", "", 4},
			{"vllm:time_to_first_token_seconds_bucket", `le="+Inf"`, 4},
			{"vllm:time_to_first_token_seconds_bucket", `le="0.08"`, 0},
			{"vllm:inter_token_latency_seconds_count", "", float64(gaps)},
			{"vllm:e2e_request_latency_seconds_count", "", 3},
		} {
			if got := sample(page, tt.name, tt.labels); got != tt.want {
				t.Errorf("%s{%s} is %v, want %v", tt.name, tt.labels, got, tt.want)
			}
		}
		for name, want := range map[string]float64{"vllm:time_to_first_token_seconds_sum": ttft, "vllm:inter_token_latency_seconds_sum": itl} {
			if got := sample(page, name, ""); got < want*0.999999 || got > want*1.000001 {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
	})
}

// Engine metrics exclude the front end, and front-end metrics include it, as on
// vLLM's page. The difference shows which of them is slow.
func TestMetricsSeparateEngineAndFrontEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testProfile()
		p.FrontEnd.FixedMs, p.FrontEnd.PerEventMs = 30, 150 // a step takes 50 or 10 ms, so events are late and merged
		s, c := start(t, Options{Profile: p, Model: "m"})
		res := post(t, c, "/v1/completions", `{"prompt":"a b c","max_tokens":8,"ignore_eos":true,"stream":true}`)
		must.Get(io.Copy(io.Discard, res.Body))(t)
		synctest.Wait()
		_, page := get(t, c, "/metrics")
		x := s.Truth()[0]
		if len(x.Writes) >= x.Output || x.Last >= x.Writes[len(x.Writes)-1] || x.Queued-x.Arrival != 30e6 {
			t.Fatalf("the front end did not fall behind: %+v", x)
		}
		seconds := func(from, to int64) float64 { return float64(to-from) / 1e9 }
		last := x.Writes[len(x.Writes)-1]
		for name, want := range map[string]float64{
			"vllm:request_queue_time_seconds_sum":     seconds(x.Queued, x.Admitted),
			"vllm:request_prefill_time_seconds_sum":   seconds(x.Admitted, x.First),
			"vllm:request_decode_time_seconds_sum":    seconds(x.First, x.Last),
			"vllm:request_inference_time_seconds_sum": seconds(x.Admitted, x.Last),
			"vllm:inter_token_latency_seconds_sum":    seconds(x.First, x.Last),
			"vllm:inter_token_latency_seconds_count":  float64(x.Output - 1),
			"vllm:time_to_first_token_seconds_sum":    seconds(x.Arrival, x.Writes[0]),
			"vllm:e2e_request_latency_seconds_sum":    seconds(x.Arrival, last),
		} {
			if got := sample(page, name, ""); got < want-1e-6 || got > want+1e-6 {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
	})
}

// Preemptions are counted if the KV cache is too small for the batch.
func TestPreemptionsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testProfile()
		p.KV.Blocks = 20
		s, c := start(t, Options{Profile: p})
		for i := range 4 {
			go func() {
				body := fmt.Sprintf(`{"prompt":"p%d b c","max_tokens":40,"ignore_eos":true}`, i)
				res, err := c.Post("http://127.0.0.1/v1/completions", "application/json", strings.NewReader(body))
				if err == nil {
					res.Body.Close()
				}
			}()
		}
		time.Sleep(time.Minute)
		_, page := get(t, c, "/metrics")
		sum := 0
		for _, x := range s.Truth() {
			sum += x.Preemptions
		}
		if got := sample(page, "vllm:num_preemptions_total", ""); got < 1 || got != float64(sum) {
			t.Errorf("%v preemptions, and %d by the truth", got, sum)
		}
	})
}

// Every engine has a valid metrics page with its own names.
func TestMetricPages(t *testing.T) {
	for _, engine := range Engines() {
		t.Run(engine, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c := start(t, Options{Profile: testProfile(), Engine: engine})
				talk(t, c, "http://127.0.0.1", "")
				path := emulatedServerOf(engine).metricsPath
				if path == "" {
					if status, _ := get(t, c, "/metrics"); status != http.StatusNotFound {
						t.Errorf("status %d, want 404", status)
					}
					return
				}
				_, page := get(t, c, path)
				golden(t, filepath.Join("testdata", "metrics", engine+".txt"), page)
			})
		})
	}
}

func TestPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, Options{Profile: testProfile(), Engine: "llamacpp", Model: "m", MaxModelLen: 512, MaxConcurrent: 9})
		for path, want := range map[string]string{
			"/health":             `{"status":"ok"}`,
			"/v1/models":          `"max_model_len":512`,
			"/version":            `{"version":"b7000"}`,
			"/load":               `{"server_load":0}`,
			"/info":               `"max_concurrent_requests":9`,
			"/server_info":        `"context_length":512`,
			"/model_info":         `"model_path":"m"`,
			"/props":              `"total_slots":8`,
			"/api/version":        `{"version":"b7000"}`,
			"/api/tags":           `"name":"m"`,
			"/flush_cache":        "Cache flushed",
			"/sim/truth":          "",
			"/v1/models?x=1":      `"id":"m"`,
			"/prometheus/metrics": "404",
		} {
			if _, body := get(t, c, path); !strings.Contains(string(body), want) {
				t.Errorf("%s: %s, want %s", path, body, want)
			}
		}
		for _, tt := range []struct{ path, body, want string }{
			{"/tokenize", `{"prompt":"dede bebe"}`, `{"count":2,"max_model_len":512,"tokens":[325,65]}`},
			{"/tokenize", `{"messages":[{"role":"user","content":"a b"},{"role":"user","content":[{"type":"text","text":"c"}]}]}`, `"count":3`},
			{"/tokenize", `{"inputs":"x  bebe"}`, `{"id":65,"text":"  bebe","start":1,"stop":7}]`},
			{"/tokenize", `{"content":"bebe"}`, `{"tokens":[65]}`},
			{"/detokenize", `{"tokens":[325,65]}`, `{"prompt":" dede bebe"}`},
			{"/v1/messages/count_tokens", `{"messages":[{"role":"user","content":"a b"}]}`, `{"input_tokens":2}`},
			{"/reset_prefix_cache", ``, `{"success":true}`},
			{"/api/show", `{"model":"m"}`, `"sim.context_length":512`},
			{"/v1/embeddings", `{"messages":[{"role":"user","content":[{"type":"text","text":"a b"},{"type":"image_url","image_url":{"url":"data:,x"}}]}]}`, `"usage":{"prompt_tokens":258,"total_tokens":258}`},
			{"/v1/embeddings", `{"input":["a b","c"],"dimensions":2}`, `"usage":{"prompt_tokens":3,"total_tokens":3}`},
			{"/v1/embeddings", `{"input":[[1,2],[3]],"encoding_format":"base64","dimensions":1}`, `"index":1,"embedding":"AACAPw=="`},
		} {
			res := post(t, c, tt.path, tt.body)
			if body, _ := io.ReadAll(res.Body); !strings.Contains(string(body), tt.want) {
				t.Errorf("%s %s: %s, want %s", tt.path, tt.body, body, tt.want)
			}
		}
	})
}
