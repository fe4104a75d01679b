package search

import (
	"iter"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tacho"
	"tacho/pace"
	"tacho/sim/step"
)

// A virtual server is a simulated engine in virtual time, with the load of the
// default dataset.
type virtual struct {
	profile       step.Profile
	input, output int
}

func newVirtual(t testing.TB, profile string) virtual {
	t.Helper()
	p, err := step.Load(profile)
	if err != nil {
		t.Fatal(err)
	}
	return virtual{p, 1024, 128}
}

// run offers a load until enough is seen or all is sent, and returns when the
// last answer was over. Closed is the number of requests in flight; 0 takes the
// arrivals as they come.
func (v virtual) run(t testing.TB, arrivals iter.Seq[time.Duration], closed int, seed uint64, add func(r *tacho.Record, inFlight int) bool) time.Duration {
	t.Helper()
	e, err := step.New(v.profile, seed)
	if err != nil {
		t.Fatal(err)
	}
	next, stop := iter.Pull(arrivals)
	defer stop()
	at, more := next()
	flying := map[uint64]*tacho.Record{}
	id, enough := uint64(0), false
	var now time.Duration
	for {
		for more && !enough && at <= now && (closed == 0 || len(flying) < closed) {
			due := at
			if closed > 0 {
				due = now
			}
			rec := &tacho.Record{Session: id, Timeline: tacho.NewTimeline(due), Input: v.input, Asked: v.output}
			rec.Slot, rec.Start, rec.Sent = due, due, due
			id++
			flying[id] = rec
			if err := e.Add(due, &step.Request{ID: id, Prompt: v.input, MaxNew: v.output, IgnoreEOS: true}); err != nil {
				t.Fatal(err)
			}
			at, more = next()
		}
		end, busy := e.Next(now)
		switch {
		case busy:
			e.Finish(func(m step.Emission) {
				rec := flying[m.ID]
				rec.Events = append(rec.Events, tacho.Event{At: end, Tokens: int16(m.Tokens)})
				rec.Output += m.Tokens
				if m.Last {
					delete(flying, m.ID)
					rec.End = end
					enough = add(rec, len(flying)) || enough
				}
			})
			now = end
		case more && !enough:
			now = max(now, at)
		default:
			return now
		}
	}
}

// probe runs one probe under a watch.
func (v virtual) probe(t testing.TB, s *Search, p Probe, w *Watch, seed uint64) time.Duration {
	t.Helper()
	seed += uint64(p.Number) * 0x9e3779b97f4a7c15
	if p.Open() {
		schedule := func(draw uint64) iter.Seq[time.Duration] {
			return pace.Poisson{Rate: p.Load, Count: p.Ceiling(), Seed: seed + draw}.Arrivals()
		}
		process := pace.Poisson{Rate: p.Load, Count: Long, Seed: seed}.Arrivals()
		return v.run(t, schedule(s.Typical(p, process, schedule)), 0, seed, w.Add)
	}
	all := func(yield func(time.Duration) bool) {
		for range p.Ceiling() {
			if !yield(0) {
				return
			}
		}
	}
	return v.run(t, all, int(p.Load), seed, w.Add)
}

// search runs a whole search.
func (v virtual) search(t testing.TB, s *Search, seed uint64) (took time.Duration) {
	t.Helper()
	for p, ok := s.Next(); ok; p, ok = s.Next() {
		w := s.Watch(p)
		took += v.probe(t, s, p, w, seed)
		s.Add(w, "")
	}
	return took
}

// long is what a long run at a rate comes to, its beginning left out.
func (v virtual) long(t testing.TB, goals []Goal, rate float64, n int, seed uint64) []Evidence {
	t.Helper()
	w := &Watch{Probe: Probe{Kind: Rate, Load: rate}, goals: goals, nextLook: math.MaxInt}
	v.run(t, pace.Poisson{Rate: rate, Count: n, Seed: seed}.Arrivals(), 0, seed, w.Add)
	var out []Evidence
	for i, g := range goals {
		sum := mark{}
		for _, s := range w.seen {
			if s.due > w.last/20 {
				m := s.marks[i]
				sum.n, sum.miss, sum.sum = sum.n+m.n, sum.miss+m.miss, sum.sum+m.sum
			}
		}
		e := Evidence{Share: sum.miss / sum.n, Value: sum.sum / sum.n}
		e.Pressure = e.Share / g.Share
		if g.Mean {
			e.Pressure = e.Value / g.Limit
		}
		out = append(out, e)
	}
	return out
}

// onAllCores does something for 0 to n-1, as many at once as there are cores.
func onAllCores(n int, do func(i int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	group.Wait()
}
