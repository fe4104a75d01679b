package search

import (
	"math"
	"slices"
	"testing"
	"time"

	"tacho/pace"
)

// queued is a probe of a server that takes one request after the other.
func queued(goals []Goal, load, seconds float64, n int, seed uint64) Result {
	arrivals := slices.Collect(pace.Poisson{Rate: load, Count: n, Seed: seed}.Arrivals())
	r := Result{Probe: Probe{Kind: Rate, Load: load}}
	wait := 0.0
	for i, at := range arrivals {
		if i > 0 {
			wait = max(0, wait+seconds-(at-arrivals[i-1]).Seconds())
		}
		value := 1000 * (wait + seconds)
		m := mark{sum: value, n: 1, miss: failed(goals[0].misses(value)), room: math.Log(goals[0].room(value))}
		r.window = append(r.window, seen{due: at, marks: []mark{m}})
	}
	r.Goals = []Evidence{evidence(goals[0], r.window, 0)}
	return r
}

// The lens counts most that is most like the server. With its weights even a probe
// that saw fewer rushes than usual shows about as many slow requests as a long run
// does.
func TestLenses(t *testing.T) {
	goals, err := ParseSLO("ttft:p95<600ms")
	if err != nil {
		t.Fatal(err)
	}
	const load, seconds, n = 8.0, 0.1, 800
	s := New(Rate, goals)
	s.process = slices.Collect(pace.Poisson{Rate: 1, Count: Stretch * n, Seed: 99}.Arrivals())
	truth := queued(goals, load, seconds, 400_000, 98).Goals[0].Share
	plain, weighed := 0.0, 0.0
	const tries = 40
	for seed := range uint64(tries) {
		r := queued(goals, load, seconds, n, seed)
		s.Results = []Result{r}
		lenses := lensesAt(load, 200*time.Millisecond)
		telling := s.telling(lenses, 0)
		if best := lenses[slices.Index(telling, slices.Max(telling))]; !best.queue || math.Abs(best.seconds/seconds-1) > 0.1 {
			t.Errorf("seed %d: %+v tells most", seed, best)
		}
		sum, all := 0.0, 0.0
		for k, weight := range (lens{seconds, true}).weights(r.window, stretched(s.process, 1/load)) {
			sum, all = sum+weight*r.window[k].marks[0].miss, all+weight
		}
		off, less := r.Goals[0].Share-truth, sum/all-truth
		plain, weighed = plain+off*off, weighed+less*less
	}
	if weighed > plain/3 {
		t.Errorf("the share of slow requests is off by %.4f with weights and %.4f without", math.Sqrt(weighed/tries), math.Sqrt(plain/tries))
	}
}
