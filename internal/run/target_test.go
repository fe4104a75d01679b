package run_test

import (
	"cmp"
	"errors"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/recorded"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/workload"
)

// pose serves a simulated engine with the protocol of another engine.
func pose(t *testing.T, o sim.Options) string {
	t.Helper()
	srv := listen(t, newSim(t, o))
	t.Cleanup(srv.Close)
	return srv.URL
}

// newSim returns a simulated engine that answers after 5 ms and then every
// millisecond.
func newSim(t *testing.T, o sim.Options) *sim.Server {
	t.Helper()
	o.TTFT, o.ITL, o.Model = 5*time.Millisecond, time.Millisecond, cmp.Or(o.Model, "tiny")
	s := must.Get(sim.New(o))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// protocols are the protocols that --backend auto detects, of simulated engines and of recordings.
var protocols = append(sim.Engines(), "triton", "triton-vllm", "lmdeploy-generate", "deepspeed-mii", "deepspeed-mii-generate", "gemini")

// serverOf returns a server with one of protocols.
func serverOf(t *testing.T, protocol string) http.Handler {
	t.Helper()
	if server := recorded.Open(protocol); server != nil {
		return server
	}
	return newSim(t, sim.Options{Engine: protocol, Model: "m"})
}

// --backend auto detects every engine, and the run uses its protocol.
func TestAuto(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, engine := range protocols {
			srv := listen(t, serverOf(t, engine))
			t.Cleanup(srv.Close)
			model := ""
			if engine == "deepspeed-mii-generate" {
				model = "m" // not listed by the server
			}
			out := do(t, planFor(srv.URL, func(p *plan.Plan) { p.Backend, p.Model = "auto", model }))
			kind := must.Get(backend.Find(engine))(t)
			if out.runner.Plan.Backend != kind.Name || out.summaries[0].Completed != 6 {
				t.Errorf("%s: taken for %s, %d completed, %v", engine, out.runner.Plan.Backend, out.summaries[0].Completed, out.summaries[0].Failures)
			}
			if got, want := out.summaries[0].Config.Simulated, recorded.Open(engine) == nil; got != want {
				t.Errorf("%s: simulated: %v, want %v", engine, got, want)
			}
			if !slices.ContainsFunc(out.said, func(s string) bool {
				return strings.HasPrefix(s, "Detected "+kind.Name+" at ") && strings.Contains(s, ": GET /")
			}) {
				t.Errorf("%s: said %q", engine, out.said)
			}
		}
		out := execute(t.Context(), planFor(notFound(t), func(p *plan.Plan) { p.Backend = "auto" }), run.Env{})
		if out.err == nil || !strings.Contains(out.err.Error(), "cannot detect the server's protocol: set --backend") {
			t.Errorf("a server of nothing: %v", out.err)
		}
		if runtime.GOOS != "linux" { // 127.77.0.9 is a local address on Linux only
			return
		}
		out = execute(t.Context(), planFor("", func(p *plan.Plan) { p.Backend, p.BaseURL, p.Host = "auto", nil, "127.77.0.9" }), run.Env{})
		if out.err == nil || !strings.Contains(out.err.Error(), "no server is listening on the usual ports [") || strings.Contains(out.err.Error(), "\n") {
			t.Errorf("no server: %v", out.err)
		}
	})
}

// A server that closes connections without notice loses only requests in flight
// at a close, and the report says so. After the first close each request opens
// its own connection.
func TestServerKeepsNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must.Get(sim.New(sim.Options{Model: "tiny"}))(t)
		srv := unstarted(t, s)
		srv.Config.ConnState = func(c net.Conn, state http.ConnState) {
			if state == http.StateIdle {
				_ = c.Close()
			}
		}
		srv.Start()
		t.Cleanup(func() { srv.Close(); _ = s.Close() })
		const limit = 8
		out := do(t, planFor(srv.URL, func(p *plan.Plan) {
			p.Backend, p.NumPrompts, p.MaxConcurrency = "openai-chat", 200, limit
		}))
		sum := out.summaries[0]
		known := slices.ContainsFunc(sum.Verdict.Reasons, func(r metric.Reason) bool { return r.Code == "connections" })
		if sum.Completed < 200-limit || !known {
			t.Errorf("%d completed, %v; verdict %+v", sum.Completed, sum.Failures, sum.Verdict)
		}
		asked := map[string]int{}
		for _, truth := range s.Truth() {
			asked[truth.ID]++
		}
		for _, rec := range out.records {
			crossed := rec.Failure != nil && strings.Contains(rec.Failure.Message, "the server may have been closing it")
			if times := asked[rec.ID]; times > 1 || times == 0 && !crossed {
				t.Errorf("the server saw %s %d times: %v", rec.ID, times, rec.Failure)
			}
		}
		if kept := do(t, planFor(pose(t, sim.Options{}), nil)); slices.ContainsFunc(kept.summaries[0].Verdict.Reasons, func(r metric.Reason) bool { return r.Code == "connections" }) {
			t.Errorf("%+v", kept.summaries[0].Verdict)
		}
	})
}

func notFound(t *testing.T) string {
	srv := listen(t, http.NotFoundHandler())
	t.Cleanup(srv.Close)
	return srv.URL
}

// Several servers share the load, and the report has one part per server.
func TestSeveralServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		urls := []string{pose(t, sim.Options{}), pose(t, sim.Options{})}
		out := do(t, planFor("", func(p *plan.Plan) { p.BaseURL, p.Backend = urls, "vllm" }))
		s := out.summaries[0]
		if len(s.Endpoints) != 2 || s.Endpoints[0].Completed != 3 || s.Endpoints[1].Completed != 3 || s.Endpoints[0].Endpoint == s.Endpoints[1].Endpoint {
			t.Errorf("%+v", s.Endpoints)
		}
		if len(s.Instruments) != 2 {
			t.Errorf("%d metrics pages", len(s.Instruments))
		}
		bad := execute(t.Context(), planFor("", func(p *plan.Plan) { p.BaseURL, p.Balance = urls, "fairly" }), run.Env{})
		if usage := new(run.UsageError); !errors.As(bad.err, &usage) || !strings.Contains(bad.err.Error(), "sticky") {
			t.Errorf("%v", bad.err)
		}
	})
}

// Values of the metrics page agree with the requests sent.
func TestInstruments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url := pose(t, sim.Options{})
		out := do(t, planFor(url, func(p *plan.Plan) { p.Backend = "vllm" }))
		sum, samples := out.summaries[0], out.levels[0].Samples
		if len(sum.Instruments) != 1 || len(samples) < 2 {
			t.Fatalf("%+v of %d samples", sum.Instruments, len(samples))
		}
		in := sum.Instruments[0]
		if in.PromptTokens == nil || *in.PromptTokens != 120 || in.GenerationTokens == nil || *in.GenerationTokens != 30 || in.TTFTMillis == nil || in.Failed != 0 {
			t.Errorf("%+v, want 120 tokens in and 30 out", in)
		}
	})
}

// A hanging or invalid metrics page does not change the run.
func TestBadInstruments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := listen(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		defer hang.Close()
		defer hang.CloseClientConnections()
		for _, page := range []string{notFound(t), "http://127.0.0.1:1/metrics", "nonsense", hang.URL} {
			out := do(t, planFor(pose(t, sim.Options{}), func(p *plan.Plan) { p.MetricsURL = []string{page} }))
			s := out.summaries[0]
			if s.Completed != 6 || s.Failed != 0 || len(s.Instruments) != 1 || s.Instruments[0].Failed == 0 {
				t.Errorf("%s: %d completed, %+v", page, s.Completed, s.Instruments)
			}
			if !slices.ContainsFunc(out.said, func(s string) bool { return strings.Contains(s, page) }) {
				t.Errorf("%s: no warning in %q", page, out.said)
			}
		}
		out := do(t, planFor(pose(t, sim.Options{}), func(p *plan.Plan) { p.MetricsURL = []string{"none"} }))
		if len(out.summaries[0].Instruments) != 0 || len(out.said) > 0 && strings.Contains(strings.Join(out.said, " "), "metrics") {
			t.Errorf("none is %+v, %q", out.summaries[0].Instruments, out.said)
		}
	})
}

func TestRetriesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		url, _ := serve(t, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "completions") && n.Add(1) <= 2 {
					http.Error(w, "busy", http.StatusServiceUnavailable)
					return
				}
				h.ServeHTTP(w, r)
			})
		})
		s := do(t, planFor(url, func(p *plan.Plan) { p.Retries, p.MaxConcurrency = 2, 1 })).summaries[0]
		if s.Completed != 6 || s.Resent != 1 || !slices.ContainsFunc(s.Verdict.Reasons, func(r metric.Reason) bool { return r.Code == "resent" }) {
			t.Errorf("%d completed, %d sent again, %+v", s.Completed, s.Resent, s.Verdict)
		}
		n.Store(0)
		if s := do(t, planFor(url, nil)).summaries[0]; s.Failed != 2 || s.Resent != 0 {
			t.Errorf("unasked: %d failed, %d sent again", s.Failed, s.Resent)
		}
	})
}

// A prompt longer than the context is an error before anything is sent.
func TestContextLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url := pose(t, sim.Options{MaxModelLen: 24})
		for _, model := range []string{"", "tiny"} {
			out := execute(t.Context(), planFor(url, func(p *plan.Plan) { p.Model = model }), run.Env{})
			if usage := new(run.UsageError); !errors.As(out.err, &usage) || !strings.Contains(out.err.Error(), "context is 24 tokens") || len(out.records) != 0 {
				t.Errorf("%v, %d sent", out.err, len(out.records))
			}
		}
		if out := do(t, planFor(url, func(p *plan.Plan) { p.RandomOutputLen = workload.Fixed(4) })); out.summaries[0].Completed != 6 {
			t.Errorf("%+v", out.summaries[0].Failures)
		}
	})
}

func TestFlushCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, got := serve(t, nil)
		do(t, planFor(url, func(p *plan.Plan) { p.FlushCache = true; list(p, "num-prompts", "2,3") }))
		n := 0
		got.mu.Lock()
		defer got.mu.Unlock()
		for _, p := range got.paths {
			if p == "/reset_prefix_cache" {
				n++
			}
		}
		if n != 2 {
			t.Errorf("flushed %d times for 2 levels", n)
		}
		out := execute(t.Context(), planFor(pose(t, sim.Options{Engine: "ollama"}), func(p *plan.Plan) { p.Backend, p.FlushCache = "ollama", true }), run.Env{})
		if !errors.Is(out.err, backend.ErrNoEndpoint) {
			t.Errorf("a server that cannot: %v", out.err)
		}
	})
}

// The report contains a note if the server does not support exact output
// lengths.
func TestExactLengthNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for engine, noted := range map[string]bool{"ollama": true, "tgi": true, "sglang": false, "vllm": false} {
			s := do(t, planFor(pose(t, sim.Options{Engine: engine}), func(p *plan.Plan) { p.Backend = engine })).summaries[0]
			if got := slices.ContainsFunc(s.Verdict.Reasons, func(r metric.Reason) bool { return r.Code == "output-length" }); got != noted {
				t.Errorf("%s: %+v", engine, s.Verdict.Reasons)
			}
		}
	})
}

func TestEmbeddings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := do(t, planFor(pose(t, sim.Options{}), func(p *plan.Plan) { p.Backend = "openai-embeddings" })).summaries[0]
		if s.Completed != 6 || s.Tokens.Input != 120 || s.Tokens.Output != 0 || !s.Config.Pools || s.Dist(metric.E2EL).N != 6 || s.Dist(metric.TTFT).N != 0 {
			t.Errorf("%d completed, %+v, %+v", s.Completed, s.Tokens, s.Failures)
		}
	})
}

// A fast server gets no more connections than its answers need.
func TestQuickServerGetsFewConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must.Get(sim.New(sim.Options{Model: "tiny", TTFT: time.Millisecond}))(t)
		var accepted atomic.Int64
		srv := unstarted(t, s)
		srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				accepted.Add(1)
			}
		}
		srv.Start()
		t.Cleanup(func() { srv.Close(); _ = s.Close() })
		out := do(t, planFor(srv.URL, func(p *plan.Plan) {
			p.Backend, p.NumPrompts, p.RequestRate, p.NoTrial = "openai-chat", 600, 400, false
		}))
		if sum := out.summaries[0]; sum.Completed != 600 || accepted.Load() > 40 {
			t.Errorf("%d of 600 requests completed over %d connections", sum.Completed, accepted.Load())
		}
	})
}

func TestUnknownClock(t *testing.T) {
	out := execute(t.Context(), planFor("http://127.0.0.1:1", func(p *plan.Plan) { p.Clock = "sun" }), run.Env{})
	if out.err == nil || !strings.Contains(out.err.Error(), "write kernel or wire or auto or read") {
		t.Error(out.err)
	}
}
