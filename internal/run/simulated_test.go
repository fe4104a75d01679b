package run_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/sim"
)

// fast runs a plan against a simulated engine with a speed-up factor of 100.
func fast(t *testing.T, page http.HandlerFunc, change func(*plan.Plan)) result {
	t.Helper()
	s := must.Get(sim.New(sim.Options{TTFT: 10 * time.Second, ITL: time.Second, Model: "tiny", Speedup: 100}))(t)
	t.Cleanup(func() { _ = s.Close() })
	srv := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if page != nil && r.URL.Path == "/sim/lateness" {
			page(w, r)
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return do(t, planFor(srv.URL, func(p *plan.Plan) {
		p.Sim, p.SimSpeedup, p.Backend = "some-engine", 100, "vllm"
		p.NumPrompts, p.RequestRate = 5, 2
		if change != nil {
			change(p)
		}
	}))
}

// A sped-up run is planned and reported in engine time: answers are never
// faster than the engine, and requests are due at the planned times.
func TestSpeedIsGivenBack(t *testing.T) {
	out := fast(t, nil, func(p *plan.Plan) { p.Burstiness = math.Inf(1) })
	for i, r := range out.records {
		if off := r.Due - r.Due.Round(500*time.Millisecond); off.Abs() > time.Microsecond || r.Due > 3*time.Second {
			t.Errorf("request %d was due at %v, want one each half second", i, r.Due)
		}
		if first := r.First() - r.Sent; first < 10*time.Second || r.Events[1].At < r.Events[0].At || r.End-r.Sent < 14*time.Second {
			t.Errorf("first token after %v, end after %v: the engine takes 10 s and 14 s", first, r.End-r.Sent)
		}
	}
	s := out.summaries[0]
	if s.DurationS < 16 || s.Throughput.RequestsPerS > 5/16.0 {
		t.Errorf("%v requests/s in %v s: the engine takes at least 16 s for 5", s.Throughput.RequestsPerS, s.DurationS)
	}
	for _, in := range s.Instruments {
		if in.TTFTMillis == nil || *in.TTFTMillis < 10_000 {
			t.Errorf("the server says its first token takes %v ms, want its own 10,000", in.TTFTMillis)
		}
	}
	if !strings.Contains(fmt.Sprint(s.Verdict), "some-engine, sped up 100 times") {
		t.Errorf("the factor is not in the verdict: %v", s.Verdict)
	}
}

// A machine too slow for the simulated engine gets a warning.
func TestSimulatedEngineThatIsLate(t *testing.T) {
	for _, tt := range []struct {
		late float64
		want string
	}{{0.01, ""}, {0.2, "DEGRADED"}, {0.7, "INVALID"}} {
		asked := 0.0
		out := fast(t, func(w http.ResponseWriter, _ *http.Request) {
			asked++
			fmt.Fprintf(w, `{"writes":%v,"late_s":%v,"gaps":%v,"gap_s":%v}`, asked*100, asked*100*tt.late, asked*80, asked*80)
		}, nil)
		got := ""
		for _, r := range out.summaries[0].Verdict.Reasons {
			if r.Code == "simulated-late" {
				got = string(r.Severity)
			}
		}
		if got != tt.want {
			t.Errorf("late by %v of a gap: %q, want %q", tt.late, got, tt.want)
		}
	}
}

// Only an engine of tacho sim is marked, whatever other servers answer.
func TestOnlySimulatorsAreSimulated(t *testing.T) {
	for answer, want := range map[string]bool{
		`{"simulator":"tacho","writes":1}`: true, `{"simulator":"tacho"`: false, `{"simulator":true}`: false,
		`{"writes":1,"late_s":0,"gaps":0,"gap_s":0}`: false, `{}`: false, "": false, "<html>tacho</html>": false,
	} {
		for _, status := range []int{http.StatusOK, http.StatusNotFound} {
			out := fast(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				fmt.Fprint(w, answer)
			}, func(p *plan.Plan) { p.Sim, p.SimSpeedup, p.NumPrompts, p.RequestRate = "", 1, 1, math.Inf(1) })
			if got := out.summaries[0].Config.Simulated; got != (want && status == http.StatusOK) {
				t.Errorf("%d %q: simulated: %v", status, answer, got)
			}
		}
	}
}

// A server that never says whether it is simulated still says what it is.
func TestUnansweredQuestionLeavesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		out := fast(t, silent, func(p *plan.Plan) { p.Sim, p.SimSpeedup, p.NumPrompts, p.RequestRate = "", 1, 1, math.Inf(1) })
		if servers := out.runner.Target.Servers; len(servers) != 1 || servers[0].Version == "" || out.summaries[0].Config.Simulated {
			t.Errorf("%+v", servers)
		}
	})
}

// The number of samples of a computed metrics page is limited, so its cost does
// not grow with the run.
func TestComputedReadingsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, _ := serve(t, nil)
		out := do(t, planFor(url, func(p *plan.Plan) {
			p.Virtual, p.Sim, p.MetricsInterval = true, "vllm-8b-h200", plan.Seconds(1e-9)
		}))
		samples := out.levels[0].Samples
		if len(samples) < 2048 || len(samples) > 4096 {
			t.Fatalf("%d readings are kept", len(samples))
		}
		gap := samples[1].At - samples[0].At
		for i := 1; i < len(samples); i++ {
			if got := samples[i].At - samples[i-1].At; got != gap {
				t.Fatalf("reading %d is %v after the one before, the first %v", i, got, gap)
			}
		}
	})
}
