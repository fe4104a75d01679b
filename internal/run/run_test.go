package run_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/workload"
)

// seen records the requests a server received.
type seen struct {
	mu     sync.Mutex
	paths  []string
	bodies []string
	ids    []string
	header http.Header
}

func (s *seen) generated() (bodies, ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.paths {
		if strings.HasSuffix(p, "completions") || strings.HasSuffix(p, "generate_stream") {
			bodies, ids = append(bodies, s.bodies[i]), append(ids, s.ids[i])
		}
	}
	return bodies, ids
}

// watch records the requests of a handler.
func (s *seen) watch(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(b))
		s.mu.Lock()
		s.paths, s.bodies, s.ids = append(s.paths, r.URL.Path), append(s.bodies, string(b)), append(s.ids, r.Header.Get("X-Request-Id"))
		if strings.HasSuffix(r.URL.Path, "completions") {
			s.header = r.Header.Clone()
		}
		s.mu.Unlock()
		h.ServeHTTP(w, r)
	})
}

func (s *seen) asked(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.paths, path)
}

// serve runs the simulator, or a handler in front of it, on the in-memory
// network.
func serve(t *testing.T, wrap func(http.Handler) http.Handler) (url string, got *seen) {
	t.Helper()
	engineSim := must.Get(sim.New(sim.Options{TTFT: 5 * time.Millisecond, ITL: time.Millisecond, Model: "tiny", Adapters: []string{"red", "blue", "lora"}}))(t)
	t.Cleanup(func() { _ = engineSim.Close() })
	got = &seen{}
	var h http.Handler = engineSim
	if wrap != nil {
		h = wrap(h)
	}
	srv := listen(t, got.watch(h))
	t.Cleanup(srv.Close)
	return srv.URL, got
}

type records []tacho.Record

func (l *records) Add(r *tacho.Record) error { *l = append(*l, *r); return nil }
func (l *records) Close() error              { return nil }

// result contains all output of a run.
type result struct {
	live.NopObserver
	records   records
	summaries []metric.Summary
	levels    []outcome.Level
	said      []string
	runner    *run.Runner
	err       error
}

func planFor(url string, change func(*plan.Plan)) plan.Plan {
	p := plan.Default()
	p.BaseURL, p.NumPrompts, p.NoTrial = []string{url}, 6, true
	p.RandomInputLen, p.RandomOutputLen = workload.Fixed(20), workload.Fixed(5)
	if change != nil {
		change(&p)
	}
	return p
}

// list sets an option to several values.
func list(p *plan.Plan, name, values string) {
	if err := p.Set(name, values); err != nil {
		panic(err)
	}
}

// execute runs a plan over the in-memory network.
func execute(ctx context.Context, p plan.Plan, env run.Env) result {
	env.Dial = network.Dial
	return executeIn(ctx, p, env)
}

func executeIn(ctx context.Context, p plan.Plan, env run.Env) (out result) {
	env.Observer = &out
	if out.runner, out.err = run.Open(ctx, p, env); out.err != nil {
		return out
	}
	defer out.runner.Close()
	out.err = out.runner.Run(ctx, &out.records)
	return out
}

// Message implements live.Observer.
func (out *result) Message(text string) { out.said = append(out.said, text) }

// LevelEnded implements live.Observer.
func (out *result) LevelEnded(l *outcome.Level) {
	out.levels, out.summaries = append(out.levels, *l), append(out.summaries, l.Summary)
}

func do(t *testing.T, p plan.Plan) result {
	t.Helper()
	out := execute(t.Context(), p, run.Env{Random: 42})
	if out.err != nil {
		t.Fatal(out.err)
	}
	return out
}

func TestEveryBackend(t *testing.T) {
	for backend, path := range map[string]string{
		"vllm": "/v1/completions", "openai": "/v1/completions", "openai-chat": "/v1/chat/completions", "tgi": "/generate_stream",
	} {
		t.Run(backend, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				url, got := serve(t, nil)
				out := do(t, planFor(url, func(p *plan.Plan) { p.Backend = backend }))
				s := out.summaries[0]
				if s.Completed != 6 || s.Failed != 0 || s.Tokens.Output != 30 || s.Tokens.Input != 120 || s.Tokens.Prompt.Differ != 0 {
					t.Errorf("%d ok, %d failed, %+v", s.Completed, s.Failed, s.Tokens)
				}
				if !got.asked(path) {
					t.Errorf("asked %q", got.paths)
				}
				if out.runner.Target.Model != "tiny" && backend != "tgi" {
					t.Errorf("model %q was not found out", out.runner.Target.Model)
				}
				for _, r := range out.records {
					if r.Due > r.Slot || r.Slot > r.Start || r.Start > r.Conn || r.Conn > r.Sent || r.Sent > r.Wrote || r.Wrote > r.End || r.Head > r.First() {
						t.Errorf("out of order: %+v", r.Timeline)
					}
				}
			})
		})
	}
}

// Prompts differ between levels and, without a seed, between runs. Warm-ups and
// ready checks never send a measured prompt. With a seed, the first level
// equals a run of only that level.
func TestPromptsDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bodiesOf := func(change func(*plan.Plan), random uint64) (measured, others map[string]int) {
			url, got := serve(t, nil)
			p := planFor(url, func(p *plan.Plan) {
				list(p, "num-prompts", "3,3")
				p.NumWarmups, p.ReadyCheck = 4, 10
				change(p)
			})
			if out := execute(t.Context(), p, run.Env{Random: random}); out.err != nil {
				t.Fatal(out.err)
			}
			measured, others = map[string]int{}, map[string]int{}
			bodies, ids := got.generated()
			for i, b := range bodies {
				if strings.Contains(ids[i], "warmup") || strings.Contains(ids[i], "trial") {
					others[b]++
				} else {
					measured[b]++
				}
			}
			return measured, others
		}
		for _, text := range []bool{false, true} {
			seed := uint64(7)
			asText := func(p *plan.Plan) { p.PromptText = text }
			a, warm := bodiesOf(asText, 1)
			b, _ := bodiesOf(asText, 2)
			if len(a) != 6 || len(warm) != 9 {
				t.Errorf("%d different prompts in two levels of 3, %d of 9 before them", len(a), len(warm))
			}
			for body := range a {
				if warm[body] > 0 || b[body] > 0 {
					t.Errorf("sent before: %.80s", body)
				}
			}
			seeded := func(p *plan.Plan) { asText(p); p.Seed = &seed }
			c, warm := bodiesOf(seeded, 1)
			d, _ := bodiesOf(seeded, 2)
			if len(c) != 6 || len(d) != 6 || len(warm) != 9 {
				t.Errorf("with a seed: %d and %d different prompts in two levels of 3, %d of 9 before them", len(c), len(d), len(warm))
			}
			for body := range c {
				if d[body] != 1 || warm[body] > 0 {
					t.Errorf("with a seed: a prompt came %d times in a second run", d[body])
				}
			}
			alone, _ := bodiesOf(func(p *plan.Plan) { seeded(p); list(p, "num-prompts", "3") }, 3)
			for body := range alone {
				if c[body] != 1 {
					t.Errorf("with a seed: a run of one level sends what no level of several does: %.80s", body)
				}
			}
		}
	})
}

// Secrets are sent to the server and appear nowhere else, even if the server
// quotes them.
func TestSecretsAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, got := serve(t, func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Error(w, "bad key "+r.Header.Get("Authorization")+" "+r.Header.Get("X-Other"), http.StatusUnauthorized)
			})
		})
		p := planFor(url, func(p *plan.Plan) { p.Model, p.Header = "m", []string{"X-Other=hush-hush-1"} })
		out := execute(t.Context(), p, run.Env{APIKey: "sk-secret-2"})
		if out.err != nil {
			t.Fatal(out.err)
		}
		got.mu.Lock()
		defer got.mu.Unlock()
		if got.header.Get("Authorization") != "Bearer sk-secret-2" || got.header.Get("X-Other") != "hush-hush-1" {
			t.Errorf("headers %v", got.header)
		}
		all := fmt.Sprintf("%+v %+v %+v %+v", out.records[0].Failure, out.summaries, out.said, out.records)
		if strings.Contains(all, "sk-secret-2") || strings.Contains(all, "hush-hush-1") || !strings.Contains(all, "[redacted]") {
			t.Errorf("kept: %s", all)
		}
		if s := out.summaries[0]; s.Failed != 6 || s.Verdict.Severity != metric.Invalid || s.Failures[0].Status != 401 {
			t.Errorf("%+v", s)
		}
	})
}

// Misbehaving servers produce counted failures with the server's message.
func TestBadServers(t *testing.T) {
	page := func(status int, kind, body string) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind)
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			})
		}
	}
	for name, c := range map[string]struct {
		serve func(http.Handler) http.Handler
		cause tacho.Cause
		words string
	}{
		"429":  {page(429, "application/json", `{"error":{"message":"slow down"}}`), tacho.Status, "slow down"},
		"500":  {page(500, "text/plain", "it broke"), tacho.Status, "it broke"},
		"html": {page(200, "text/html", "<html><title>Welcome to nginx!</title></html>"), tacho.Malformed, ""},
		"hang": {func(http.Handler) http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		}, tacho.Timeout, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				url, _ := serve(t, c.serve)
				out := do(t, planFor(url, func(p *plan.Plan) { p.Model, p.RequestTimeout = "m", 0.2 }))
				s := out.summaries[0]
				if s.Failed != 6 || len(s.Failures) != 1 || s.Failures[0].Cause != c.cause || !strings.Contains(s.Failures[0].Example, c.words) {
					t.Errorf("%d failed: %+v", s.Failed, s.Failures)
				}
			})
		})
	}
}

// If a server stops, requests in flight and later requests fail.
func TestServerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engineSim := must.Get(sim.New(sim.Options{TTFT: time.Millisecond, ITL: 20 * time.Millisecond, Model: "tiny"}))(t)
		defer func() { _ = engineSim.Close() }()
		var served int
		var mu sync.Mutex
		srv := unstarted(t, nil)
		srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			if strings.HasSuffix(r.URL.Path, "completions") {
				served++
			}
			if served == 10 {
				served++
				go func() {
					_ = srv.Listener.Close()
					srv.CloseClientConnections()
				}()
			}
			mu.Unlock()
			engineSim.ServeHTTP(w, r)
		})
		srv.Start()
		defer srv.Close()
		out := do(t, planFor(srv.URL, func(p *plan.Plan) {
			p.NumPrompts, p.MaxConcurrency = 40, 2
		}))
		s := out.summaries[0]
		if s.Completed == 0 || s.Completed+s.Failed != 40 || s.Failed < 28 {
			t.Errorf("%d ok, %d failed: %+v", s.Completed, s.Failed, s.Failures)
		}
		for _, f := range s.Failures {
			if !slices.Contains([]tacho.Cause{tacho.Reset, tacho.Refused, tacho.Truncated}, f.Cause) {
				t.Errorf("%+v", f)
			}
		}
	})
}

func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const url = "http://127.0.0.1:1" // a port no test uses
		for name, change := range map[string]func(*plan.Plan){
			"no model":    func(*plan.Plan) {},
			"model":       func(p *plan.Plan) { p.Model = "m" },
			"ready check": func(p *plan.Plan) { p.Model, p.ReadyCheck = "m", 0.3 },
		} {
			out := execute(t.Context(), planFor(url, change), run.Env{})
			if out.err == nil || !strings.HasPrefix(out.err.Error(), "cannot reach the server at "+url) || strings.Contains(out.err.Error(), "\n") {
				t.Errorf("%s: %v", name, out.err)
			}
		}
	})
}

// The ready check waits for a server that is still loading.
func TestReadyCheckWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refusals atomic.Int64
		refusals.Store(2)
		url, got := serve(t, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "completions") && refusals.Add(-1) >= 0 {
					http.Error(w, "loading", http.StatusServiceUnavailable)
					return
				}
				h.ServeHTTP(w, r)
			})
		})
		out := do(t, planFor(url, func(p *plan.Plan) { p.ReadyCheck = 30 }))
		if _, ids := got.generated(); len(ids) != 9 || out.summaries[0].Completed != 6 {
			t.Errorf("%q", ids)
		}
	})
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, _ := serve(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		p := planFor(url, func(p *plan.Plan) { p.NumPrompts, p.MaxConcurrency = 100_000, 4 })
		n := 0
		var out result
		r, err := run.Open(ctx, p, run.Env{Dial: network.Dial, Observer: &out})
		must.Do(t, err)
		defer r.Close()
		err = r.Run(ctx, sinkFunc(func(*tacho.Record) error {
			if n++; n == 20 {
				cancel()
			}
			return nil
		}))
		if !errors.Is(err, context.Canceled) || len(out.summaries) != 1 {
			t.Fatalf("%v, %d summaries", err, len(out.summaries))
		}
		if s := out.summaries[0]; s.Completed < 10 || s.Failed != 0 || !s.Config.Interrupted ||
			!slices.ContainsFunc(s.Verdict.Reasons, func(r metric.Reason) bool { return r.Code == "interrupted" && r.Severity == metric.Degraded }) {
			t.Errorf("%d ok, %d failed, %d canceled, %+v", s.Completed, s.Failed, s.Canceled, s.Verdict)
		}
	})
}

type sinkFunc func(*tacho.Record) error

func (f sinkFunc) Add(r *tacho.Record) error { return f(r) }
func (f sinkFunc) Close() error              { return nil }

// The profiler starts when the server is full and runs for the given duration.
func TestProfileWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for users, want := range map[int]bool{6: true, 2: false} {
			url, got := serve(t, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !strings.HasSuffix(r.URL.Path, "_profile") {
						h.ServeHTTP(w, r)
					}
				})
			})
			do(t, planFor(url, func(p *plan.Plan) {
				p.NumPrompts, p.MaxConcurrency, p.RandomOutputLen = 12, users, workload.Fixed(200)
				p.Profile, p.ProfileAt, p.ProfileFor, p.MetricsInterval = true, 6, 0.1, 0.02
			}))
			if got.asked("/start_profile") != want || got.asked("/stop_profile") != want {
				t.Errorf("%d requests at once: profiled %v, stopped %v", users, got.asked("/start_profile"), got.asked("/stop_profile"))
			}
			if want && !generatedBefore(got.paths, "/start_profile") {
				t.Errorf("%q", got.paths)
			}
		}
	})
}

// generatedBefore reports whether a request was served before a path was
// requested.
func generatedBefore(paths []string, path string) bool {
	return slices.IndexFunc(paths, func(p string) bool { return strings.HasSuffix(p, "/completions") }) < slices.IndexFunc(paths, func(p string) bool { return strings.HasSuffix(p, path) })
}

func TestAdaptersProbesAndProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, got := serve(t, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, "_profile") {
					h.ServeHTTP(w, r)
				}
			})
		})
		out := do(t, planFor(url, func(p *plan.Plan) {
			p.LoraModules, p.LoraAssignment = []string{"red", "blue"}, "round-robin"
			p.Profile, p.ProbeRate, p.RandomOutputLen = true, 50, workload.Fixed(60)
		}))
		bodies, ids := got.generated()
		models := map[string]int{}
		for i, b := range bodies {
			if !strings.Contains(ids[i], "probe") {
				models[b[:strings.Index(b, ",")]]++
			}
		}
		if models[`{"model":"red"`] != 3 || models[`{"model":"blue"`] != 3 {
			t.Errorf("%v", models)
		}
		if !got.asked("/start_profile") || !got.asked("/stop_profile") {
			t.Errorf("%q", got.paths)
		}
		s := out.summaries[0]
		if s.Probe == nil || s.Probe.Completed == 0 || s.Completed != 6 {
			t.Errorf("probes %+v, %d requests", s.Probe, s.Completed)
		}
	})
}

// No session starts after --max-seconds, in open and closed loops.
func TestMaxSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, _ := serve(t, nil)
		open := do(t, planFor(url, func(p *plan.Plan) {
			p.NumPrompts = plan.Default().NumPrompts
			p.MaxSeconds, p.RequestRate = 0.5, 100
		}))
		for _, r := range open.records {
			if r.Due >= 500*time.Millisecond {
				t.Errorf("due at %v", r.Due)
			}
		}
		if n := len(open.records); n == 0 || n > 90 {
			t.Errorf("%d requests at 100/s in half a second", n)
		}
		closed := do(t, planFor(url, func(p *plan.Plan) {
			p.NumPrompts = plan.Default().NumPrompts
			p.MaxSeconds, p.MaxConcurrency = 0.5, 1
		}))
		if n := len(closed.records); n != 56 { // 5 tokens take 5 ms plus four times 1 ms
			t.Errorf("%d requests of 9 ms one after the other in half a second, want 56", n)
		}
	})
}

// One answer that never ends does not hold a level with --max-seconds for the default timeout of six hours.
func TestMaxSecondsEndsStalls(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*plan.Plan)
		want   time.Duration // of the level
	}{
		"default":       {func(*plan.Plan) {}, 10*time.Minute + 5*time.Second},
		"own timeout":   {func(p *plan.Plan) { list(p, "request-timeout", "3600") }, time.Hour + 4*time.Second}, // the last request left after 4 s
		"no time limit": {func(p *plan.Plan) { p.MaxSeconds, p.NumPrompts = 0, 4 }, 6*time.Hour + 4*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				url, _ := serve(t, func(h http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/completions") {
							h.ServeHTTP(w, r)
							return
						}
						for r.Context().Err() == nil { // pings for ever
							_, _ = io.WriteString(w, ": ping\n\n")
							_ = http.NewResponseController(w).Flush()
							time.Sleep(20 * time.Second)
						}
					})
				})
				began := time.Now()
				out := do(t, planFor(url, func(p *plan.Plan) {
					p.NumPrompts, p.MaxSeconds, p.RequestRate, p.Burstiness = plan.Default().NumPrompts, 5, 1, math.Inf(1)
					c.change(p)
				}))
				if took := time.Since(began); took < c.want-time.Second || took > c.want+time.Second {
					t.Errorf("took %v, want %v", took, c.want)
				}
				if f := out.records[0].Failure; f == nil || f.Cause != tacho.Timeout || (name == "default") != strings.Contains(f.Message, "--request-timeout") {
					t.Errorf("%+v", f)
				}
			})
		})
	}
}

// Due but unsent requests are counted and affect the verdict.
func TestUnsent(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*plan.Plan)
		due    int  // 0 if requests are due when sent
		unsent bool // some requests were not sent
	}{
		"overload":    {func(p *plan.Plan) { p.RequestRate, p.MaxConcurrency, p.MaxSeconds = 100, 1, 3 }, 300, true},
		"kept up":     {func(p *plan.Plan) { p.RequestRate, p.MaxConcurrency, p.MaxSeconds = 20, 10, 3 }, 60, false},
		"closed loop": {func(p *plan.Plan) { p.MaxConcurrency, p.MaxSeconds = 2, 1 }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				url, _ := serve(t, nil)
				out := do(t, planFor(url, func(p *plan.Plan) {
					p.NumPrompts, p.RandomOutputLen, p.Burstiness = plan.Default().NumPrompts, workload.Fixed(20), 1e9 // even gaps
					c.change(p)
				}))
				s := out.summaries[0]
				if all := s.Requests + s.Config.Unsent; c.due > 0 && (all < c.due-1 || all > c.due+1) {
					t.Errorf("%d sent, %d never sent, want %d due", s.Requests, s.Config.Unsent, c.due)
				}
				invalid := slices.ContainsFunc(s.Verdict.Reasons, func(r metric.Reason) bool { return r.Code == "unsent" && r.Severity == metric.Invalid })
				if invalid != c.unsent || (s.Config.Unsent > 0) != c.unsent {
					t.Errorf("%d never sent: %+v", s.Config.Unsent, s.Verdict)
				}
			})
		})
	}
}

// In virtual time every value is exact: the report contains the simulated
// engine's times, from the first byte sent and from the due time.
func TestTimesAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, _ := serve(t, nil)
		out := do(t, planFor(url, func(p *plan.Plan) { p.NumPrompts, p.RequestRate, p.MaxConcurrency = 50, 400, 2 }))
		s := out.summaries[0]
		for m, want := range map[*metric.Metric]float64{metric.TTFT: 5, metric.TPOT: 1, metric.ITL: 1, metric.E2EL: 9} {
			if d := s.Dist(m); d.Stats.Mean != want || d.Stats.Percentile(99) != want {
				t.Errorf("%s: mean %v ms, p99 %v ms, want %v", m.Name, d.Stats.Mean, d.Stats.Percentile(99), want)
			}
		}
		waited := false
		for _, r := range out.records {
			waited = waited || r.Slot > r.Due
			if r.First()-r.Sent != 5*time.Millisecond || r.End-r.Sent != 9*time.Millisecond || r.Sent != r.Slot {
				t.Errorf("slot %v, sent %v, first token %v, end %v", r.Slot, r.Sent, r.First(), r.End)
			}
		}
		if !waited {
			t.Error("no request waited for the limit")
		}
	})
}

// A server may reject the field ignore_eos, and the user can turn it off.
func TestIgnoreEOSCanBeRefused(t *testing.T) {
	for text, want := range map[string]bool{"": true, "true": true, "false": false} {
		p := plan.Default()
		for _, o := range p.Options() {
			if o.Name == "ignore-eos" && text != "" {
				must.Do(t, o.Set(text))
			}
		}
		work, _, err := run.Workload(t.Context(), &p, 1, run.Env{})
		must.Do(t, err)
		s, err := work.Session(0)
		if err != nil || s.Turns[0].Request.IgnoreEOS != want {
			t.Errorf("--ignore-eos=%s: %v, %v, want %v", text, s.Turns[0].Request.IgnoreEOS, err, want)
		}
	}
}
