package run_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// The test request asks for two tokens in every protocol. With warm-ups it asks
// for a full answer, because it counts as the first warm-up.
func TestTrialIsShort(t *testing.T) {
	const tokens = 97
	asksForAll := regexp.MustCompile(`:\s*97\b`)
	for _, engine := range protocols {
		for warmups, want := range map[int]bool{0: false, 1: true} {
			synctest.Test(t, func(t *testing.T) {
				var got seen
				srv := listen(t, got.watch(serverOf(t, engine)))
				defer srv.Close()
				out := do(t, planFor(srv.URL, func(p *plan.Plan) {
					p.Backend, p.Model, p.NoTrial, p.NumWarmups, p.NumPrompts = "auto", "m", false, warmups, 1
					p.RandomOutputLen = workload.Fixed(tokens)
				}))
				var bodies []string
				for i, id := range got.ids {
					if id != "" {
						bodies = append(bodies, got.bodies[i])
					}
				}
				if len(bodies) != 2 || asksForAll.MatchString(bodies[0]) != want || !asksForAll.MatchString(bodies[1]) || out.summaries[0].Completed != 1 {
					t.Errorf("%s: %d requests, trial %s, %+v", engine, len(bodies), bodies[0], out.summaries[0].Failures)
				}
			})
		}
	}
}

// A server that cannot answer with two tokens gets a full test request:
// protocols with a minimum, and models that reason first.
func TestTrialIsLongEnough(t *testing.T) {
	const empty = "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n"
	for name, short := range map[string]http.HandlerFunc{
		"minimum": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error":{"message":"Invalid 'max_output_tokens': expected a value >= 16"}}`, http.StatusBadRequest)
		},
		"empty": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, empty)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			url, got := serve(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					if strings.Contains(string(body), `"max_tokens":2,`) {
						short(w, r)
						return
					}
					r.Body = io.NopCloser(strings.NewReader(string(body)))
					next.ServeHTTP(w, r)
				})
			})
			out := do(t, planFor(url, func(p *plan.Plan) { p.NoTrial = false }))
			if bodies, _ := got.generated(); out.summaries[0].Completed != 6 || len(bodies) != 2+6 || len(out.said) > 0 && strings.Contains(strings.Join(out.said, " "), "token ids") {
				t.Errorf("%s: %d requests, %d completed, %v", name, len(bodies), out.summaries[0].Completed, out.said)
			}
		})
	}
}
