package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim/step"

	"github.com/google/go-cmp/cmp"
)

const testAsk = `{"prompt":"a b c","max_tokens":3,"ignore_eos":true,"stream":true}`

// since converts the times of a truth to offsets.
func since(t time.Time, at []int64) []time.Duration {
	var out []time.Duration
	for _, x := range at {
		out = append(out, time.Duration(x-t.UnixNano()))
	}
	return out
}

// Two concurrent requests share steps: the whole batch determines the duration of a
// step.
func TestBatchedModelSharesSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testProfile()
		p.Cost.Step = []step.Knot{{Tokens: 1, Ms: 10}, {Tokens: 2, Ms: 20}}
		s, c := start(t, Options{Profile: p})
		time.Sleep(time.Second) // an idle engine accepts a request at any time
		epoch := time.Now()
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				res := post(t, c, "/v1/completions", testAsk)
				io.Copy(io.Discard, res.Body)
			})
		}
		wg.Wait()
		synctest.Wait()
		const ms = time.Millisecond
		// The first request is prefilled alone in 100 ms. Its next token takes the
		// 40 ms of a step with the second prefill. Then both decode in steps of 20
		// ms until the first is done.
		want := [][]time.Duration{{100 * ms, 140 * ms, 160 * ms}, {140 * ms, 160 * ms, 170 * ms}}
		var got [][]time.Duration
		for _, x := range s.Truth() {
			got = append(got, since(epoch, x.Writes))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

// The server in real time gives the same times as the engine in virtual time.
func TestServerAgreesWithSimulate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testProfile()
		p.MaxSequences = 4
		p.KV.PrefixCache = false
		p.Cost.Step = []step.Knot{{Tokens: 1, Ms: 10}, {Tokens: 64, Ms: 200}}
		s, c := start(t, Options{Profile: p})
		epoch := time.Now()
		var arrivals []step.Arrival
		for i, ms := range []int{0, 5, 35, 40, 41, 120, 121, 400, 3000, 3001} {
			arrivals = append(arrivals, step.Arrival{
				At:      time.Duration(ms) * time.Millisecond,
				Request: step.Request{ID: uint64(i + 1), Prompt: 10 + i, MaxNew: 5 + 3*i, IgnoreEOS: true},
			})
		}
		var wg sync.WaitGroup
		for _, a := range arrivals {
			wg.Go(func() {
				time.Sleep(a.At)
				body := fmt.Sprintf(`{"prompt":"%s","max_tokens":%d,"ignore_eos":true,"stream":true}`, strings.Repeat("w ", a.Prompt), a.MaxNew)
				res := post(t, c, "/v1/completions", body, "X-Request-Id", fmt.Sprint(a.ID))
				io.Copy(io.Discard, res.Body)
			})
		}
		wg.Wait()
		synctest.Wait()
		got, want := map[string][]time.Duration{}, map[string][]time.Duration{}
		for _, x := range s.Truth() {
			got[x.ID] = since(epoch, x.Writes)
		}
		traces, _, err := step.Simulate(*p, 0, arrivals)
		must.Do(t, err)
		for i, x := range traces {
			id := fmt.Sprint(arrivals[i].ID)
			for _, e := range x.Events {
				want[id] = append(want[id], e.At)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("writes by request (-engine +server):\n%s", diff)
		}
	})
}

// A later turn that repeats the prompt and the answer finds both in the cache.
func TestPrefixCacheKnowsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, Options{Profile: testProfile()}) // blocks of 4
		turn := func(prompt string) (cached int, text string) {
			body, _ := json.Marshal(map[string]any{"prompt": prompt, "max_tokens": 6, "ignore_eos": true})
			res := post(t, c, "/v1/completions", string(body))
			var answer struct {
				Choices []struct{ Text string }
				Usage   struct {
					Details struct {
						Cached int `json:"cached_tokens"`
					} `json:"prompt_tokens_details"`
				}
			}
			must.Do(t, json.NewDecoder(res.Body).Decode(&answer))
			return answer.Usage.Details.Cached, answer.Choices[0].Text
		}
		cached, text := turn("one two three four five six")
		if cached != 0 {
			t.Errorf("a new prompt had %d tokens cached", cached)
		}
		// 6 and 6 tokens, of which the last was never read: two full blocks.
		if cached, _ := turn("one two three four five six" + text + " and more to say"); cached != 8 {
			t.Errorf("the next turn had %d tokens cached, want 8", cached)
		}
		post(t, c, "/reset_prefix_cache", "")
		if cached, _ := turn("one two three four five six" + text + " and more to say"); cached != 0 {
			t.Errorf("after a reset %d tokens were cached, want 0", cached)
		}
		if l := s.model.load(); l.prefixHits != 8 {
			t.Errorf("%d tokens hit, want 8", l.prefixHits)
		}
	})
}

func TestAbandonedAnswerLeavesTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, Options{Profile: testProfile()})
		res := post(t, c, "/v1/completions", `{"prompt":"a","max_tokens":60,"ignore_eos":true,"stream":true}`)
		time.Sleep(150 * time.Millisecond)
		if l := s.model.load(); l.running != 1 {
			t.Errorf("%d running, want 1", l.running)
		}
		res.Body.Close()
		time.Sleep(100 * time.Millisecond) // it would have run for another 500
		if l := s.model.load(); l.running != 0 || l.kvUsed != 0 {
			t.Errorf("%d running with %d blocks, want none", l.running, l.kvUsed)
		}
	})
}

func TestSpeedup(t *testing.T) {
	for name, opt := range map[string]Options{
		"fixed":   {TTFT: 100 * time.Millisecond, ITL: 10 * time.Millisecond},
		"batched": {Profile: testProfile()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt.Speedup = 10
				s, c := start(t, opt)
				epoch := time.Now()
				io.Copy(io.Discard, post(t, c, "/v1/completions", testAsk).Body)
				synctest.Wait()
				const ms = time.Millisecond
				want := []time.Duration{10 * ms, 11 * ms, 12 * ms}
				if diff := cmp.Diff(want, since(epoch, s.Truth()[0].Writes)); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestTruthInATrailer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, Options{TTFT: time.Second})
		for _, body := range []string{testAsk, strings.Replace(testAsk, `"stream":true`, `"stream":false`, 1)} {
			res := post(t, c, "/v1/completions", body, "X-Sim-Truth", "1")
			io.Copy(io.Discard, res.Body)
			var got Truth
			if err := json.Unmarshal([]byte(res.Trailer.Get("X-Sim-Truth")), &got); err != nil {
				t.Fatalf("trailer %v: %v", res.Trailer, err)
			}
			synctest.Wait()
			truth := s.Truth()
			if diff := cmp.Diff(truth[len(truth)-1], got); diff != "" {
				t.Errorf("trailer (-truth +trailer):\n%s", diff)
			}
		}
	})
}

// A request that never fits into the engine is refused and does not hang.
func TestTooLongForTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testProfile()
		p.KV.Blocks = 4
		_, c := start(t, Options{Profile: p})
		res := post(t, c, "/v1/completions", `{"prompt":"a","max_tokens":60}`)
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("status %d, want 400", res.StatusCode)
		}
	})
}

func TestInvalidOptions(t *testing.T) {
	for _, tt := range []struct {
		opt  Options
		want string
	}{
		{Options{TTFT: -1}, "negative"},
		{Options{MaxModelLen: -1}, "negative"},
		{Options{Speedup: -1}, "positive"},
		{Options{Engine: "x"}, "vllm, sglang"},
		{Options{Profile: &step.Profile{}}, "policy"},
		{Options{Faults: []string{"x"}}, "have 429"},
		{Options{Faults: []string{"pause"}}, "pause@60s"},
		{Options{Faults: []string{"refuse"}}, "refuse@10s+5s"},
		{Options{Faults: []string{"503=101%"}}, "not a rate"},
		{Options{Faults: []string{"503@10s/20s"}}, "needs a length"},
		{Options{Faults: []string{"503@10s+30s/20s"}}, "no gap"},
		{Options{Faults: []string{"stall:1:soon"}}, "not a duration"},
	} {
		if _, err := New(tt.opt); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("New(%+v): %v, want it to say %q", tt.opt, err, tt.want)
		}
	}
}

// If a front end needs longer for its events than the engine for a step, it merges
// tokens into one event. No token is lost, and usage counts all.
func TestFrontEndMergesTokens(t *testing.T) {
	for _, tt := range []struct {
		perEvent, least, most float64 // tokens in an event
	}{{0, 1, 1}, {0.1, 1, 1.01}, {5, 3, 5}} {
		synctest.Test(t, func(t *testing.T) {
			p := testProfile()
			p.FrontEnd.PerEventMs = tt.perEvent
			s, c := start(t, Options{Profile: p})
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					body := fmt.Sprintf(`{"prompt":"p%d","max_tokens":60,"ignore_eos":true,"stream":true}`, i)
					_, _ = io.Copy(io.Discard, post(t, c, "/v1/completions", body).Body)
				})
			}
			wg.Wait()
			synctest.Wait()
			tokens, events := 0, 0
			for _, got := range s.Truth() {
				tokens, events = tokens+got.Output, events+len(got.Writes)
			}
			if mean := float64(tokens) / float64(events); tokens != 480 || mean < tt.least || mean > tt.most {
				t.Errorf("%v ms an event: %d tokens, %.2f in an event, want 480 and %v to %v", tt.perEvent, tokens, mean, tt.least, tt.most)
			}
		})
	}
}
