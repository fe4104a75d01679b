package search

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
)

// request returns a record with a time to first token.
func request(at, ttft time.Duration) *tacho.Record {
	r := &tacho.Record{Timeline: tacho.NewTimeline(at), Output: 2}
	r.Slot, r.Start, r.Sent = at, at, at
	r.Events = tacho.Events{{At: at + ttft}, {At: at + 2*ttft}}
	r.End = at + 2*ttft
	return r
}

// verdict returns the verdict of a probe of 10 requests per second, of which a share is
// slow. Each is as slow as the one before with a probability of sticky, so slow
// requests come in runs.
func verdict(seed uint64, share, sticky float64) (Verdict, int) {
	goals, err := ParseSLO("ttft:p95<500ms")
	if err != nil {
		panic(err)
	}
	s := New(Rate, goals)
	w := s.Watch(Probe{Kind: Rate, Load: 10, Effort: Effort{MinRequests: 64, MaxRequests: 1000, Alpha: 0.05}})
	rng := rand.New(rand.NewPCG(seed, 1))
	slow := rng.Float64() < share
	for i := range 1200 {
		if rng.Float64() >= sticky {
			slow = rng.Float64() < share
		}
		ttft := time.Duration(100+rng.IntN(100)) * time.Millisecond
		if slow {
			ttft = 600 * time.Millisecond
		}
		if w.Add(request(time.Duration(i)*100*time.Millisecond, ttft), 3) {
			return w.verdict, i
		}
	}
	return w.verdict, 1200
}

// A load exactly at the limit gets a wrong verdict of either side in at most one of
// twenty probes, although a probe is checked many times and slow requests come in runs.
// A load far from the limit gets the right verdict early.
func TestProbesAreJudgedSoonAndRightly(t *testing.T) {
	const tries = 200
	for _, sticky := range []float64{0, 0.5} {
		count := map[Verdict]int{}
		for seed := range uint64(tries) {
			v, _ := verdict(seed, 0.05, sticky)
			count[v]++
		}
		if most := tries * 8 / 100; count[Holds] > most || count[Misses] > most {
			t.Errorf("at the limit, sticky %v: %v of %d probes", sticky, count, tries)
		}
	}
	for _, c := range []struct {
		share float64
		want  Verdict
		soon  int
	}{{0, Holds, 500}, {0.3, Misses, 150}} {
		right, requests := 0, 0
		for seed := range uint64(50) {
			v, n := verdict(seed, c.share, 0)
			requests += n
			if v == c.want {
				right++
			}
		}
		if right < 49 || requests/50 > c.soon {
			t.Errorf("share %v: %d of 50 say %v, after %d requests on average", c.share, right, c.want, requests/50)
		}
	}
}

// Overload is seen before any request is too slow. If a server keeps up, it is not called
// overloaded.
func TestOverrunIsNoticed(t *testing.T) {
	goals := must.Get(ParseSLO("ttft:p99<60s"))(t)
	for _, c := range []struct {
		served float64 // requests per second, of 10 arriving
		want   bool
	}{{7, true}, {14, false}} {
		s := New(Rate, goals)
		w := s.Watch(Probe{Kind: Rate, Load: 10, Effort: Effort{MinRequests: 64, MaxRequests: 1000, Alpha: 0.05}})
		rng := rand.New(rand.NewPCG(3, 4))
		var now, free time.Duration
		var ends []time.Duration
		for range 2000 {
			now += time.Duration(rng.ExpFloat64() / 10 * float64(time.Second))
			free = max(now, free) + time.Duration(float64(time.Second)/c.served)
			ends = append(ends, free)
			inFlight := 0
			for _, e := range ends {
				if e > now {
					inFlight++
				}
			}
			if w.Add(request(now, (free-now)/2), inFlight) {
				break
			}
		}
		if (w.verdict == Overrun) != c.want {
			t.Errorf("%v requests of 10 could be served a second: %v", c.served, w.verdict)
		}
	}
}

// feed adds the requests of a server whose p90 is 400 ms at a load of limit, and grows
// with the square of the load.
func feed(w *Watch, p Probe, limit float64) {
	rng := rand.New(rand.NewPCG(uint64(p.Number), 5))
	load := p.Load
	if p.Alone {
		load = 0.5
	}
	var now time.Duration
	for range p.Ceiling() {
		now += time.Duration(rng.ExpFloat64() / load * float64(time.Second))
		lowest := 250 * (load / limit) * (load / limit)
		ttft := time.Duration(lowest * (1 + 0.6667*rng.Float64()) * float64(time.Millisecond))
		if w.Add(request(now, ttft), int(load)) {
			return
		}
	}
}

// A server that serves a third of the requests is overloaded, also if the probe is judged
// when all requests were served and no latency is a goal. A server that fills is not.
func TestOverloadIsSeenAfterTheLastAnswer(t *testing.T) {
	goals := must.Get(ParseSLO("error<5%"))(t)
	const load, sent = 90, 360
	for name, c := range map[string]struct {
		end  func(due time.Duration, i int) time.Duration
		want bool
	}{
		"overloaded": {func(_ time.Duration, i int) time.Duration { return time.Duration(i+1) * time.Second / (load / 3) }, true},
		"filling":    {func(due time.Duration, _ int) time.Duration { return due + 1500*time.Millisecond }, false},
	} {
		w := New(Rate, goals).Watch(Probe{Kind: Rate, Load: load, Effort: scout(load).Effort})
		for i := range sent {
			due := time.Duration(i) * time.Second / load
			w.Add(request(due, (c.end(due, i)-due)/2), 0)
		}
		w.decided, w.verdict = w.now, Holds // at the last answer
		if got := w.result().Verdict == Overrun; got != c.want {
			t.Errorf("%s: overrun is %v", name, got)
		}
	}
}
