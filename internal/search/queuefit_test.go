package search

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/pace"
)

// Requests share the processor, pause during the prefill of another request, and wait for
// a slot. Requests with longer outputs take longer.
func TestQueue(t *testing.T) {
	mean := func(at float64) arrival { return arrival{at, 1, 1} }
	for _, c := range []struct {
		name       string
		queue      queue
		schedule   []arrival
		wait, rest []float64
	}{
		{"alone", queue{1, 2, 1, unlimited}, []arrival{mean(5)}, []float64{1}, []float64{2}},
		{"two share", queue{0, 2, 1, unlimited}, []arrival{mean(0), mean(0)}, []float64{0, 0}, []float64{4, 4}},
		{"one comes later", queue{0, 2, 1, unlimited}, []arrival{mean(0), mean(1)}, []float64{0, 0}, []float64{3, 3}},
		{"others pause", queue{1, 2, 0, unlimited}, []arrival{mean(0), mean(2)}, []float64{1, 1}, []float64{3, 2}},
		{"one slot", queue{0, 2, 0, 1}, []arrival{mean(0), mean(1), mean(9)}, []float64{0, 1, 0}, []float64{2, 2, 2}},
		{"long ones", queue{1, 2, 0, unlimited}, []arrival{{0, 2, 3}, {10, 1, 0.5}}, []float64{2, 1}, []float64{6, 1}},
		{"the short one finishes first", queue{0, 2, 0, unlimited}, []arrival{{0, 1, 3}, {1, 1, 1}}, []float64{0, 0}, []float64{6, 2}},
	} {
		wait, rest := c.queue.simulate(c.schedule)
		if !slices.Equal(wait, c.wait) || !slices.Equal(rest, c.rest) {
			t.Errorf("%s: %v and %v, want %v and %v", c.name, wait, rest, c.wait, c.rest)
		}
	}
}

// queued returns a probe of a server with one slot and constant service times (M/D/1).
func queued(goals []Goal, load float64, n int, seed uint64) Result {
	const seconds = 0.1
	r := Result{Probe: Probe{Kind: Rate, Load: load}}
	wait, before := 0.0, 0.0
	for at := range (pace.Poisson{Rate: load, Count: n, Seed: seed}).Arrivals() {
		wait = max(0, wait-(at.Seconds()-before))
		before = at.Seconds()
		wait += seconds
		value := 1000 * wait
		v := goalValues{sum: value, n: 1, misses: indicator(goals[0].misses(value)), logHeadroom: math.Log(goals[0].headroom(value))}
		r.window = append(r.window, observation{due: at, goals: []goalValues{v}})
		r.schedule = append(r.schedule, arrival{at.Seconds(), 1, 1})
	}
	r.Goals = []Evidence{newEvidence(goals[0], r.window, 0)}
	return r
}

// fitted returns a search with one probe and the latency of a request alone.
func fitted(goals []Goal, r Result, process []arrival) *Search {
	s := New(Rate, goals)
	r.LatencyP95 = 300 * time.Millisecond
	alone := Result{Probe: Probe{Kind: Rate, Load: 1, Alone: true}, LatencyP95: 100 * time.Millisecond}
	s.process, s.Results = process, []Result{alone, r}
	s.queues = []queueFit{s.fitQueue(0, r.Load)}
	s.postStratify(0, r.Load)
	s.curves = s.newCurves(s.samples(), r.Load, process)
	return s
}

// missShare returns the miss ratio at a load, or 1 if there is no curve.
func (s *Search) missShare(load float64) float64 {
	if s.curves[0] == nil {
		return 1
	}
	return s.curves[0].missShare(load)
}

func aProcess(seed uint64) []arrival {
	return arrivals(pace.Poisson{Rate: 1, Count: 60_000, Seed: seed}.Arrivals())
}

// With the queueing model, a short probe estimates the share of slow requests of a long
// run better than the share in the probe itself.
func TestQueueFit(t *testing.T) {
	const load, n, tries = 8.0, 800, 8
	for _, slo := range []string{"ttft:p95<600ms", "ttft:mean<300ms"} {
		goals, err := ParseSLO(slo)
		if err != nil {
			t.Fatal(err)
		}
		process := aProcess(99)
		long := queued(goals[:1], load, 400_000, 98).Goals[0]
		plain, modeled := 0.0, 0.0
		for seed := range uint64(tries) {
			r := queued(goals[:1], load, n, seed)
			s := fitted(goals[:1], r, process)
			if s.queues[0].r2 < 0.9 {
				t.Errorf("%s, seed %d: %+v", slo, seed, s.queues[0])
			}
			off, less := math.Log(r.Goals[0].Share/long.Share), math.Log(s.missShare(load)/long.Share)
			if goals[0].Mean {
				c := s.samples()[0].goals[0]
				off, less = math.Log(r.Goals[0].Value/long.Value), math.Log(c.mean/c.n/long.Value)
			}
			plain, modeled = plain+off*off, modeled+less*less
		}
		if modeled > plain/4 {
			t.Errorf("%s: rms error %.3f with the model and %.3f without", slo, math.Sqrt(modeled/tries), math.Sqrt(plain/tries))
		}
	}
}

// The miss curve does not extrapolate beyond the longest delay in the probes: a probe
// far below the limit does not show the limit.
func TestMissCurveDoesNotExtrapolate(t *testing.T) {
	goals, err := ParseSLO("ttft:p99<2000ms")
	if err != nil {
		t.Fatal(err)
	}
	s := fitted(goals, queued(goals, 5, 800, 1), aProcess(99))
	if miss := s.missShare(9.9); miss > 0 {
		t.Errorf("predicted miss ratio %.3f", miss)
	}
}

// If requests with short predicted delays are the slow ones, there is no fit.
func TestNegativeCorrelationIsNoFit(t *testing.T) {
	goals, err := ParseSLO("ttft:p95<600ms")
	if err != nil {
		t.Fatal(err)
	}
	r := queued(goals, 8, 800, 1)
	for i := range r.window {
		r.window[i].goals[0].logHeadroom *= -1
	}
	s := fitted(goals, r, aProcess(99))
	if s.queues[0].r2 > 0 || s.curves[0] != nil {
		t.Errorf("%+v", s.queues[0])
	}
}
