package search

import (
	"math"
	"slices"
	"testing"
	"time"

	"tacho/pace"
)

// The model does what its figures say: requests share the time, stand still while
// another begins, and wait for a seat; those with longer answers stay longer.
func TestModel(t *testing.T) {
	usual := func(at float64) arrival { return arrival{at, 1, 1} }
	for _, c := range []struct {
		name       string
		model      model
		schedule   []arrival
		wait, rest []float64
	}{
		{"alone", model{1, 2, 1, unseated}, []arrival{usual(5)}, []float64{1}, []float64{2}},
		{"two share", model{0, 2, 1, unseated}, []arrival{usual(0), usual(0)}, []float64{0, 0}, []float64{4, 4}},
		{"one comes later", model{0, 2, 1, unseated}, []arrival{usual(0), usual(1)}, []float64{0, 0}, []float64{3, 3}},
		{"others stand still", model{1, 2, 0, unseated}, []arrival{usual(0), usual(2)}, []float64{1, 1}, []float64{3, 2}},
		{"one seat", model{0, 2, 0, 1}, []arrival{usual(0), usual(1), usual(9)}, []float64{0, 1, 0}, []float64{2, 2, 2}},
		{"long ones", model{1, 2, 0, unseated}, []arrival{{0, 2, 3}, {10, 1, 0.5}}, []float64{2, 1}, []float64{6, 1}},
		{"the short one leaves first", model{0, 2, 0, unseated}, []arrival{{0, 1, 3}, {1, 1, 1}}, []float64{0, 0}, []float64{6, 2}},
	} {
		wait, rest := c.model.serve(c.schedule)
		if !slices.Equal(wait, c.wait) || !slices.Equal(rest, c.rest) {
			t.Errorf("%s: %v and %v, want %v and %v", c.name, wait, rest, c.wait, c.rest)
		}
	}
}

// queued is a probe of a server that takes one request after the other.
func queued(goals []Goal, load float64, n int, seed uint64) Result {
	const seconds = 0.1
	r := Result{Probe: Probe{Kind: Rate, Load: load}}
	wait, before := 0.0, 0.0
	for at := range (pace.Poisson{Rate: load, Count: n, Seed: seed}).Arrivals() {
		wait = max(0, wait-(at.Seconds()-before))
		before = at.Seconds()
		wait += seconds
		value := 1000 * wait
		m := mark{sum: value, n: 1, miss: failed(goals[0].misses(value)), room: math.Log(goals[0].room(value))}
		r.window = append(r.window, seen{due: at, marks: []mark{m}})
		r.schedule = append(r.schedule, arrival{at.Seconds(), 1, 1})
	}
	r.Goals = []Evidence{evidence(goals[0], r.window, 0)}
	return r
}

// learned is a search that saw a probe, and a request that was alone.
func learned(goals []Goal, r Result, process []arrival) *Search {
	s := New(Rate, goals)
	r.Takes = 300 * time.Millisecond
	alone := Result{Probe: Probe{Kind: Rate, Load: 1, Alone: true}, Takes: 100 * time.Millisecond}
	s.process, s.Results = process, []Result{alone, r}
	s.lenses = []lens{s.learn(0, r.Load)}
	s.balance(0, r.Load)
	s.curves = s.newCurves(s.samples(), r.Load, process)
	return s
}

// misses is the share of the requests that miss the goal at a load; 1 where no curve says.
func (s *Search) misses(load float64) float64 {
	if s.curves[0] == nil {
		return 1
	}
	return s.curves[0].misses(load)
}

func aProcess(seed uint64) []arrival {
	return arrivals(pace.Poisson{Rate: 1, Count: 60_000, Seed: seed}.Arrivals())
}

// A lens learns what makes requests slow. So even a probe that saw fewer rushes than
// usual shows about which share of the requests is slow in the long run.
func TestLenses(t *testing.T) {
	const load, n, tries = 8.0, 800, 8
	for _, slo := range []string{"ttft:p95<600ms", "ttft:mean<300ms"} {
		goals, err := ParseSLO(slo)
		if err != nil {
			t.Fatal(err)
		}
		process := aProcess(99)
		long := queued(goals[:1], load, 400_000, 98).Goals[0]
		plain, learnt := 0.0, 0.0
		for seed := range uint64(tries) {
			r := queued(goals[:1], load, n, seed)
			s := learned(goals[:1], r, process)
			if s.lenses[0].tells < 0.9 {
				t.Errorf("%s, seed %d: %+v", slo, seed, s.lenses[0])
			}
			off, less := math.Log(r.Goals[0].Share/long.Share), math.Log(s.misses(load)/long.Share)
			if goals[0].Mean {
				c := s.samples()[0].goals[0]
				off, less = math.Log(r.Goals[0].Value/long.Value), math.Log(c.mean/c.n/long.Value)
			}
			plain, learnt = plain+off*off, learnt+less*less
		}
		if learnt > plain/4 {
			t.Errorf("%s: off by %.3f with a lens and %.3f without", slo, math.Sqrt(learnt/tries), math.Sqrt(plain/tries))
		}
	}
}

// Nobody knows how slow it is where it is more crowded than was ever seen: a probe far
// below the limit does not show the limit.
func TestNothingIsKnownBeyond(t *testing.T) {
	goals, err := ParseSLO("ttft:p99<2000ms")
	if err != nil {
		t.Fatal(err)
	}
	s := learned(goals, queued(goals, 5, 800, 1), aProcess(99))
	if miss := s.misses(9.9); miss > 0 {
		t.Errorf("%.3f of the requests are said to miss", miss)
	}
}

// Where the less crowded requests are the slow ones, no lens tells anything.
func TestNoLensTells(t *testing.T) {
	goals, err := ParseSLO("ttft:p95<600ms")
	if err != nil {
		t.Fatal(err)
	}
	r := queued(goals, 8, 800, 1)
	for i := range r.window {
		r.window[i].marks[0].room *= -1
	}
	s := learned(goals, r, aProcess(99))
	if s.lenses[0].tells > 0 || s.curves[0] != nil {
		t.Errorf("%+v", s.lenses[0])
	}
}
