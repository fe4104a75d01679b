package run_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/sim/step"
	"github.com/tacho-bench/tacho/workload"
)

func keep(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// caching serves an engine with an unlimited prefix cache.
func caching(t *testing.T, blockTokens int) string {
	t.Helper()
	p := must.Get(step.Load("vllm-8b-h100"))(t)
	p.KV.BlockTokens, p.KV.Blocks, p.KV.PrefixCache = blockTokens, 0, true
	engineSim := must.Get(sim.New(sim.Options{Profile: &p, Speedup: 1000}))(t)
	t.Cleanup(func() { _ = engineSim.Close() })
	srv := listen(t, engineSim)
	t.Cleanup(srv.Close)
	return srv.URL
}

// mooncakeTrace writes a trace of conversations with shared prefixes. It
// returns the number of prompt tokens a block cache finds by hash ids.
func mooncakeTrace(t *testing.T) (path string, hitTokens, tokens int) {
	t.Helper()
	const block = 512
	rng := rand.New(rand.NewPCG(1, 2))
	var lines strings.Builder
	seen := map[int]bool{}
	next := 100
	for i := range 60 {
		ids := []int{rng.IntN(3)} // one of three system prompts
		if rng.IntN(2) == 0 {
			ids = append(ids, 10+rng.IntN(2)+2*ids[0]) // and one of two documents
		}
		for range rng.IntN(3) {
			ids = append(ids, next)
			next++
		}
		length := len(ids)*block - rng.IntN(block) // the last block may be cut
		fresh := false
		for k, id := range ids {
			full := (k+1)*block <= length-1 // the last token is always computed
			fresh = fresh || !seen[id]
			if full && !fresh {
				hitTokens += block
			}
			if (k+1)*block <= length {
				seen[id] = true
			}
		}
		tokens += length
		list, _ := json.Marshal(ids)
		fmt.Fprintf(&lines, `{"timestamp": %d, "input_length": %d, "output_length": 2, "hash_ids": %s}`+"\n", 10*i, length, list)
	}
	return keep(t, "mooncake.jsonl", lines.String()), hitTokens, tokens
}

// The engine's cache hits equal the hits of the trace's hash ids, to the token,
// and requests are due at the trace's times, to the nanosecond.
func TestMooncakeReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, hits, tokens := mooncakeTrace(t)
		url := caching(t, 512)
		out := do(t, planFor(url, func(p *plan.Plan) {
			p.NumPrompts = plan.Default().NumPrompts
			p.Backend, p.DatasetName, p.DatasetPath, p.TraceSpeedup = "vllm", "mooncake", path, 2
			p.MaxConcurrency = 1 // sequential, so that no two requests miss the same block together
		}))
		s := out.summaries[0]
		if s.Completed != 60 || s.Tokens.Input != tokens || s.Tokens.Prompt.Differ != 0 || hits == 0 {
			t.Fatalf("%d ok, %+v, want %d tokens", s.Completed, s.Tokens, tokens)
		}
		if s.Tokens.Cached != hits {
			t.Errorf("the engine found %d of %d tokens in its cache, the hash ids say %d", s.Tokens.Cached, tokens, hits)
		}
		for _, r := range out.records {
			if want := time.Duration(r.Session) * 5 * time.Millisecond; r.Due != want {
				t.Errorf("request %d was due at %v, the trace says %v", r.Session, r.Due, want)
			}
		}
	})
}

// Two options ignore the times of a trace.
func TestTraceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, _, _ := mooncakeTrace(t)
		url := caching(t, 512)
		for name, set := range map[string]func(p *plan.Plan){
			"--self-timed=false": func(p *plan.Plan) { p.SelfTimed = false },
			"--no-self-timed":    func(p *plan.Plan) { p.NoSelfTimed = true },
		} {
			out := do(t, planFor(url, func(p *plan.Plan) {
				p.Backend, p.DatasetName, p.DatasetPath, p.NumPrompts = "vllm", "mooncake", path, 5
				set(p)
			}))
			for _, r := range out.records {
				if r.Due != 0 {
					t.Errorf("%s: request %d was due at %v, want 0", name, r.Session, r.Due)
				}
			}
		}
	})
}

// The history of a conversation is the server's own text, so the engine finds
// it in its cache. The report has one part per turn.
func TestConversationAgainstTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, backend := range []string{"openai-chat", "vllm"} {
			url := caching(t, 4)
			out := do(t, planFor(url, func(p *plan.Plan) {
				p.Backend, p.DatasetName, p.NumPrompts, p.MaxConcurrency = backend, "conversation", 5, 2
				p.Turns, p.TurnInputLen, p.TurnOutputLen, p.ThinkMS, p.SystemLen = workload.Fixed(3), workload.Fixed(20), workload.Fixed(9), workload.Fixed(30), 40
				p.ReadyCheck, p.NumWarmups = 10, 2
			}))
			s := out.summaries[0]
			if s.Completed != 15 || s.Failed != 0 || s.Sessions == nil || s.Sessions.Completed != 5 || s.Tokens.Prompt.Differ != 0 {
				t.Fatalf("%s: %d ok, %+v, %+v, %+v", backend, s.Completed, s.Sessions, s.Tokens, s.Failures)
			}
			slices.SortFunc(out.records, func(a, b tacho.Record) int { return int(a.Session)*10 + a.Turn - int(b.Session)*10 - b.Turn })
			for i, r := range out.records {
				if r.Text != "" {
					t.Errorf("%s: an answer was kept though nobody asked for it", backend)
				}
				if r.Turn == 0 {
					continue
				}
				before := out.records[i-1]
				if r.Due != before.End+30*time.Millisecond || r.Sent < r.Due {
					t.Errorf("%s: turn %d was due at %v and sent at %v, the one before ended at %v", backend, r.Turn, r.Due, r.Sent, before.End)
				}
				// All earlier tokens except the last token of the answer, which
				// was never read.
				if want := (before.Usage.Prompt + before.Usage.Completion - 1) / 4 * 4; r.Usage.Cached != want {
					t.Errorf("%s: turn %d found %d tokens in the cache, want %d", backend, r.Turn, r.Usage.Cached, want)
				}
			}
			var turns []string
			for _, g := range s.Groups {
				turns = append(turns, fmt.Sprintf("%s %s %d", g.By, g.Value, g.Completed))
			}
			if want := []string{"turn 1 5", "turn 2 5", "turn 3 5"}; !slices.Equal(turns, want) {
				t.Errorf("%s: groups %q", backend, turns)
			}
		}
	})
}

// Reasoning is not part of an answer: the next turn quotes and counts only the
// content.
func TestReasoningIsNotQuoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const thought, output = 6, 15
		engineSim := must.Get(sim.New(sim.Options{Faults: []string{fmt.Sprint("reasoning:", thought)}}))(t)
		t.Cleanup(func() { _ = engineSim.Close() })
		var mu sync.Mutex
		asked := map[string]string{} // body by request id
		srv := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			mu.Lock()
			asked[r.Header.Get("X-Request-Id")] = string(body)
			mu.Unlock()
			engineSim.ServeHTTP(w, r)
		}))
		t.Cleanup(srv.Close)
		out := do(t, planFor(srv.URL, func(p *plan.Plan) {
			p.Backend, p.DatasetName, p.NumPrompts, p.SaveDetailed = "openai-chat", "conversation", 3, true
			p.Turns, p.TurnInputLen, p.TurnOutputLen = workload.Fixed(3), workload.Fixed(5), workload.Fixed(output)
		}))
		if s := out.summaries[0]; s.Completed != 9 || s.Tokens.Prompt.Differ != 0 {
			t.Fatalf("%d ok, %+v, %+v", s.Completed, s.Tokens, s.Failures)
		}
		for _, r := range out.records {
			if n := len(strings.Fields(r.Text)); n != output || r.Output != output {
				t.Errorf("%d words are kept, %d tokens counted, want all %d", n, r.Output, output)
			}
			if r.Turn == 2 {
				continue
			}
			var next struct {
				Messages []tacho.Message `json:"messages"`
			}
			id, _, _ := strings.Cut(r.ID, ".")
			must.Do(t, json.Unmarshal([]byte(asked[fmt.Sprintf("%s.%d", id, r.Turn+1)]), &next))
			want := strings.Join(strings.Fields(r.Text)[thought:], " ")
			if got := strings.TrimSpace(next.Messages[2*r.Turn+1].Content); got != want {
				t.Errorf("turn %d quotes %q, want %q", r.Turn+1, got, want)
			}
		}
	})
}

// Classes of a mix have their weights, models, headers and priorities, and the
// report has one part per class.
func TestMixedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tiers atomic.Int64
		url, got := serve(t, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Tier") == "gold" {
					tiers.Add(1)
				}
				h.ServeHTTP(w, r)
			})
		})
		out := do(t, planFor(url, func(p *plan.Plan) {
			p.NumPrompts = 40
			p.Mix = []string{
				"label=short weight=3 random-input-len=10 random-output-len=2",
				"label=long weight=1 random-input-len=uniform(50,60) random-output-len=4 model=lora priority=7 header.x-tier=gold",
			}
		}))
		s := out.summaries[0]
		byClass := map[string]metric.Group{}
		for _, g := range s.Groups {
			if g.By == "class" {
				byClass[g.Value] = g
			}
		}
		short, long := byClass["short"], byClass["long"]
		if short.Completed != 30 || long.Completed != 10 || short.Input != 300 || short.Output != 60 || long.Output != 40 || long.Input < 500 || long.Input > 600 {
			t.Errorf("%+v\n%+v", short, long)
		}
		bodies, _ := got.generated()
		n := 0
		for _, b := range bodies {
			if strings.Contains(b, `"model":"lora"`) && strings.Contains(b, `"priority":7`) {
				n++
			}
		}
		if n != 10 || tiers.Load() != 10 {
			t.Errorf("%d of 40 requests asked for the adapter with priority, %d had the header", n, tiers.Load())
		}
	})
}

// An invalid line stops a replay, and the requests before it are reported.
func TestBadLineStopsAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := `{"timestamp": %d, "input_length": 5, "output_length": 2}` + "\n"
		path := keep(t, "m.jsonl", fmt.Sprintf(good, 0)+fmt.Sprintf(good, 1)+"oops\n"+fmt.Sprintf(good, 2))
		url, _ := serve(t, nil)
		p := planFor(url, func(p *plan.Plan) { p.DatasetName, p.DatasetPath = "mooncake", path })
		out := execute(t.Context(), p, run.Env{})
		if out.err == nil || !strings.Contains(out.err.Error(), "m.jsonl:3: not a JSON object") || len(out.records) != 2 {
			t.Errorf("%v, %d records", out.err, len(out.records))
		}
		p.BadLines = "skip"
		out = execute(t.Context(), p, run.Env{})
		if out.err != nil || len(out.records) != 3 {
			t.Fatalf("%v, %d records", out.err, len(out.records))
		}
		if !slices.ContainsFunc(out.summaries[0].Verdict.Reasons, func(r metric.Reason) bool {
			return r.Code == "workload" && strings.Contains(r.Text, "skipped 1 bad lines")
		}) {
			t.Errorf("%+v", out.summaries[0].Verdict)
		}
	})
}

func TestPlanOfDatasets(t *testing.T) {
	for want, change := range map[string]func(*plan.Plan){
		"--scenario needs":                             func(p *plan.Plan) { p.DatasetName = "book"; _ = p.Scenario.UnmarshalText([]byte("D(1,2)")) },
		"--bad-lines \"maybe\"":                        func(p *plan.Plan) { p.BadLines = "maybe" },
		"--trace-limit -1":                             func(p *plan.Plan) { p.TraceLimit = -1 },
		"--trace-speedup 0":                            func(p *plan.Plan) { p.TraceSpeedup = 0 },
		"must not be negative":                         func(p *plan.Plan) { p.TraceBlock = -1 },
		"unknown dataset \"sonet\"":                    func(p *plan.Plan) { p.DatasetName = "sonet" },
		"should be OPTION=VALUE":                       func(p *plan.Plan) { p.Mix = []string{"random"} },
		"unknown dataset option":                       func(p *plan.Plan) { p.Mix = []string{"num-prompts=5"} },
		"two classes have the label":                   func(p *plan.Plan) { p.Mix = []string{"label=a", "label=a"} },
		`random-prefix-len: "x" is not a whole number`: func(p *plan.Plan) { p.Mix = []string{"random-prefix-len=x"} },
	} {
		p := planFor("http://127.0.0.1:1", change)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A conversation with a failed turn is cut short and counted.
func TestConversationsCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var strays atomic.Int64
		url, _ := serve(t, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if id, _, _ := strings.Cut(r.Header.Get("X-Request-Id"), "."); id != r.Header.Get("X-Session-Id") {
					strays.Add(1)
				}
				if strings.HasSuffix(r.Header.Get("X-Request-Id"), "-2.1") {
					http.Error(w, "no", http.StatusInternalServerError)
					return
				}
				h.ServeHTTP(w, r)
			})
		})
		out := do(t, planFor(url, func(p *plan.Plan) {
			p.Backend, p.DatasetName, p.NumPrompts = "openai-chat", "conversation", 4
			p.Turns, p.TurnInputLen, p.TurnOutputLen = workload.Fixed(4), workload.Fixed(5), workload.Fixed(2)
			p.SessionHeader, p.RequestIDPrefix = "X-Session-Id", "talk-"
		}))
		if n := strays.Load(); n != 0 {
			t.Errorf("%d requests did not name their conversation", n)
		}
		want := &metric.Sessions{Begun: 4, Completed: 3, CutShort: 1, Unsent: 2, Refused: 2}
		if sessions := out.summaries[0].Sessions; *sessions != *want || out.summaries[0].Completed != 13 || out.summaries[0].Failed != 1 {
			t.Errorf("%+v, want %+v", sessions, want)
		}
	})
}

// A request contains several inputs if the backend accepts them.
func TestEmbeddingBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, got := serve(t, nil)
		out := do(t, planFor(url, func(p *plan.Plan) {
			p.Backend, p.NumPrompts, p.RandomBatchSize = "openai-embeddings", 11, 4
		}))
		// 4, 4 and 3 prompts of 20 tokens.
		if s := out.summaries[0]; s.Completed != 3 || s.Tokens.Input != 11*20 || s.Tokens.Prompt.Differ != 0 {
			t.Errorf("%d ok, %+v, %+v", s.Completed, s.Tokens, s.Failures)
		}
		if !got.asked("/v1/embeddings") {
			t.Errorf("%q", got.paths)
		}
		p := planFor(url, func(p *plan.Plan) { p.RandomBatchSize = 4 })
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "accepts one prompt") {
			t.Errorf("%v", err)
		}
	})
}
