package step

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

// Simulate gives the same emissions as an engine driven step by step.
func TestSimulateMatchesEngine(t *testing.T) {
	for trial := range uint64(60) {
		rng := rand.New(rand.NewPCG(trial, 9))
		p := randomProfile(rng)
		arrivals := randomArrivals(rng, p, 30)
		emissions, wantStats := drive(t, p, trial, arrivals)
		traces, stats, err := Simulate(p, trial, arrivals)
		must.Do(t, err)
		if diff := gocmp.Diff(wantStats, stats); diff != "" {
			t.Fatalf("trial %d, stats (-want +got):\n%s", trial, diff)
		}
		for i, trace := range traces {
			story := emissions[trace.ID]
			end := story[len(story)-1]
			want := Trace{
				ID: arrivals[i].ID, Arrival: arrivals[i].At, Admitted: end.Admitted, Events: trace.Events,
				Finish: end.Finish, EOS: end.EOS, Cached: end.Cached, Preempts: end.Preemptions,
			}
			if diff := gocmp.Diff(want, trace); diff != "" {
				t.Fatalf("trial %d (-want +got):\n%s", trial, diff)
			}
			last := trace.Admitted
			for j, ev := range trace.Events {
				if ev.Tokens != story[j].Tokens || ev.At <= last {
					t.Fatalf("trial %d, request %d, event %d: %+v after %v, want %d tokens", trial, trace.ID, j, ev, last, story[j].Tokens)
				}
				last = ev.At
			}
			if len(trace.Events) != len(story) || trace.Admitted < trace.Arrival {
				t.Fatalf("trial %d, request %d: %d events, want %d; %+v", trial, trace.ID, len(trace.Events), len(story), trace)
			}
		}
	}
}

func TestSimulateKeepsTheCallersOrder(t *testing.T) {
	p := plain("chunked")
	p.ContextTokens = 50
	traces, stats, err := Simulate(p, 1, []Arrival{
		{At: time.Second, Request: Request{ID: 1, Prompt: 3, MaxNew: 1}},
		{At: 2 * time.Second, Request: Request{ID: 2, Prompt: 100, MaxNew: 1}},
		{At: 0, Request: Request{ID: 3, Prompt: 2, MaxNew: 1}},
	})
	must.Do(t, err)
	if traces[1].Err == nil || !strings.Contains(traces[1].Err.Error(), "too long") || traces[1].Events != nil {
		t.Errorf("the request that does not fit: %+v", traces[1])
	}
	for i, want := range map[int]time.Duration{0: time.Second + 3*time.Millisecond, 2: 2 * time.Millisecond} {
		if got := traces[i].Events[0].At; got != want {
			t.Errorf("arrival %d: first token at %v, want %v", i, got, want)
		}
	}
	if stats.Finished != 2 {
		t.Errorf("%d finished, want 2", stats.Finished)
	}
	if _, _, err := Simulate(Profile{}, 1, nil); err == nil {
		t.Error("an empty profile was accepted")
	}
}

// A step ends at its computed time even if the driver wakes up late.
func TestLatenessDoesNotAddUp(t *testing.T) {
	e := must.Get(New(plain("chunked"), 1))(t)
	must.Do(t, e.Add(0, &Request{ID: 1, Prompt: 4, MaxNew: 10, IgnoreEOS: true}))
	var now time.Duration
	for step := range 10 {
		end, ok := e.Next(now)
		if want := time.Duration(4+step) * time.Millisecond; !ok || end != want {
			t.Fatalf("step %d ends at %v, want %v", step, end, want)
		}
		if step == 2 { // the driver is late: a request that arrived meanwhile is not scheduled before its arrival
			must.Do(t, e.Add(end+3*time.Millisecond, &Request{ID: 2, Prompt: 1, MaxNew: 1}))
		}
		e.Finish(func(m Emission) {
			if m.ID == 2 && m.Admitted < 9*time.Millisecond {
				t.Errorf("admitted at %v, before it arrived", m.Admitted)
			}
		})
		now = end
		if e.Stats().Running > 1 || step == 5 {
			break
		}
	}
}
