package run_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/internal/traceid"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// refusing is a server that answers prompts of token ids with the given status,
// like servers that accept text only. With status 200 the error is in the
// stream, as in vLLM for an id outside the vocabulary.
func refusing(status int, always bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(b)))
			if strings.HasSuffix(r.URL.Path, "completions") && (always || strings.Contains(string(b), `"prompt":[`)) {
				const refusal = `{"error":{"message":"prompt: Input should be a valid string","type":"invalid_request_error"}}`
				if status == http.StatusOK {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, "data: "+refusal+"\n\ndata: [DONE]\n\n")
					return
				}
				http.Error(w, refusal, status)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func TestServerThatTakesOnlyTextGetsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, status := range []int{400, 422, 500, 200} {
			url, got := serve(t, refusing(status, false))
			out := do(t, planFor(url, func(p *plan.Plan) { p.NoTrial = false; list(p, "num-prompts", "3,4") }))
			for i, s := range out.summaries {
				if s.Failed != 0 || s.Completed != 3+i || s.Tokens.Prompt.Differ != 0 {
					t.Errorf("%d: %d failed, %+v", status, s.Failed, s.Tokens)
				}
				told := slices.IndexFunc(s.Verdict.Reasons, func(r metric.Reason) bool { return r.Code == "prompt-text" })
				if told < 0 || !strings.Contains(s.Verdict.Reasons[told].Text, "valid string") {
					t.Errorf("%d: the verdict does not tell: %+v", status, s.Verdict)
				}
			}
			if bodies, _ := got.generated(); len(bodies) != 2+7 { // one test request per form, and the measured requests
				t.Errorf("%d: %d requests", status, len(bodies))
			}
			if !strings.Contains(strings.Join(out.said, "\n"), "rejected a prompt of token ids") {
				t.Errorf("said %q", out.said)
			}
		}
	})
}

// If text is rejected too, token ids were not the cause.
func TestServerThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, got := serve(t, refusing(400, true))
		out := execute(t.Context(), planFor(url, func(p *plan.Plan) { p.NoTrial = false }), run.Env{Random: 42})
		if out.err == nil || !strings.Contains(out.err.Error(), "valid string") {
			t.Errorf("%v", out.err)
		}
		if bodies, _ := got.generated(); len(bodies) != 2 {
			t.Errorf("%d requests, want two trials", len(bodies))
		}
		// A server that accepts token ids gets one test request only.
		url, got = serve(t, nil)
		do(t, planFor(url, func(p *plan.Plan) { p.NoTrial = false }))
		if bodies, _ := got.generated(); len(bodies) != 7 || strings.Contains(bodies[6], `"prompt":"`) {
			t.Errorf("%q", bodies)
		}
	})
}

func TestRequestIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
		for name, tc := range map[string]struct {
			change func(*plan.Plan)
			want   *regexp.Regexp
			same   bool
		}{
			"by default":         {func(*plan.Plan) {}, regexp.MustCompile(`^bench-[0-9a-f]{8}-(trial-|warmup-)?\d$`), false},
			"uuid":               {func(p *plan.Plan) { p.RequestIDFormat = "uuid" }, uuid, false},
			"no prefix":          {func(p *plan.Plan) { p.RequestIDPrefix = "" }, regexp.MustCompile(`^(trial-|warmup-)?\d$`), false},
			"a header of theirs": {func(p *plan.Plan) { p.Header = []string{"X-Request-Id=mine"} }, regexp.MustCompile(`^mine$`), true},
		} {
			url, got := serve(t, nil)
			do(t, planFor(url, func(p *plan.Plan) {
				p.NoTrial, p.NumWarmups = false, 3
				tc.change(p)
			}))
			_, ids := got.generated()
			if len(ids) != 9 {
				t.Errorf("%s: %d requests", name, len(ids))
			}
			for _, id := range ids {
				if !tc.want.MatchString(id) {
					t.Errorf("%s: %q", name, id)
				}
			}
			slices.Sort(ids)
			if n := len(slices.Compact(ids)); n != 9 && !tc.same {
				t.Errorf("%s: %d different ids of 9", name, n)
			}
		}
		p := planFor("http://127.0.0.1:1", func(p *plan.Plan) { p.RequestIDFormat = "guid" })
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "uuid") {
			t.Errorf("%v", err)
		}
	})
}

// Token ids are within the model's vocabulary: a server with 257 tokens rejects
// others.
func TestIDsAreInTheVocabulary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		meta := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/models" {
					_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"tiny","object":"model","owned_by":"llamacpp","meta":{"vocab_type":1,"n_vocab":257,"n_ctx_train":2048}}]}`)
					return
				}
				next.ServeHTTP(w, r)
			})
		}
		small := tinyTokenizer(t, t.TempDir())
		for name, tc := range map[string]struct {
			wrap      func(http.Handler) http.Handler
			change    func(*plan.Plan)
			low, high int32
		}{
			"nobody tells":       {nil, func(*plan.Plan) {}, 1000, 30_000},
			"the server tells":   {meta, func(*plan.Plan) {}, 30, 242},
			"the user tells":     {nil, func(p *plan.Plan) { p.RandomVocab = 250 }, 31, 250},
			"the tokenizer does": {nil, func(p *plan.Plan) { p.Tokenizer = small }, 1, 257},
		} {
			url, got := serve(t, tc.wrap)
			do(t, planFor(url, func(p *plan.Plan) {
				p.RandomInputLen = workload.Fixed(400)
				tc.change(p)
			}))
			bodies, _ := got.generated()
			var all []int32
			for _, b := range bodies {
				var body struct{ Prompt []int32 }
				must.Do(t, json.Unmarshal([]byte(b), &body))
				all = append(all, body.Prompt...)
			}
			if len(all) != 6*400 || slices.Min(all) < tc.low || slices.Max(all) >= tc.high {
				t.Errorf("%s: %d ids from %d to %d", name, len(all), slices.Min(all), slices.Max(all))
			}
		}
	})
}

// The requests of a sample carry the traceparent of their span, and others carry none. Agents have the same random
// number, so they send the same.
func TestTraceparent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fraction := range []float64{0.5, 1} {
			var mu sync.Mutex
			parents := map[string]string{}
			url, _ := serve(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					parents[r.Header.Get("X-Request-Id")] = r.Header.Get("Traceparent")
					mu.Unlock()
					next.ServeHTTP(w, r)
				})
			})
			p := planFor(url, func(p *plan.Plan) { p.Traceparent, p.NumPrompts = fraction, 40 })
			_ = execute(t.Context(), p, run.Env{Random: 1, Trace: 9})
			sent := 0
			for id, got := range parents {
				want := ""
				if at := traceid.Of(9, id); at.Sampled(fraction) {
					want, sent = at.Parent(), sent+1
				}
				if got != want && id != "" {
					t.Errorf("%s carries %q, want %q", id, got, want)
				}
			}
			if sent == 0 || fraction < 1 && sent == 40 {
				t.Errorf("%d of 40 requests are traced with %g", sent, fraction)
			}
		}
	})
}
