package cluster

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
)

type nothing struct{}

func (nothing) Add(*tacho.Record) error { return nil }
func (nothing) Close() error            { return nil }

// The true offset is within the bound for any delays and for drift up to maxDrift.
func TestClockBoundIsTrue(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		real := time.Duration(rng.Int64N(int64(10*time.Second))) - 5*time.Second
		rate := (2*rng.Float64() - 1) * maxDrift
		way := time.Duration(rng.Int64N(int64(20 * time.Millisecond)))
		var c clock
		now := time.Unix(1e9, 0)
		truth := func(at time.Time) time.Duration {
			return real + time.Duration(rate*float64(at.Sub(time.Unix(1e9, 0))))
		}
		for range 300 {
			there := way/2 + time.Duration(rng.ExpFloat64()*float64(way))
			back := way/2 + time.Duration(rng.ExpFloat64()*float64(way))
			told := now.Add(there)
			c.add(now, told.Add(back), told.Add(truth(told)))
			now = now.Add(time.Duration(rng.Int64N(int64(2 * time.Second)))).Add(there + back)
			offset, bound := c.now(now)
			if off := (offset - truth(now)).Abs(); off > bound+time.Microsecond {
				t.Fatalf("seed %d: off by %v, told %v", seed, off, bound)
			}
		}
		if _, bound := c.now(now); bound > 2*way+time.Millisecond {
			t.Errorf("seed %d: ways of %v, and a bound of %v", seed, way, bound)
		}
	}
}

// An agent with a wrong clock starts at the same time as the others, and its records have the
// coordinator's times.
func TestRecordsAreMovedToOneClock(t *testing.T) {
	m := &member{agentInfo: agentInfo{Name: "a"}, clock: clock{offset: 7 * time.Second, bound: time.Millisecond, at: time.Now()}}
	s := &share{member: m, shareState: shareState{Offset: 7*time.Second - 3*time.Millisecond}} // estimated at the start
	r := tacho.NewRecord(0, &tacho.Request{}, time.Second)
	r.Slot, r.Sent, r.End = time.Second+4*time.Millisecond, time.Second+5*time.Millisecond, 2*time.Second
	r.Events = tacho.Events{{At: 1500 * time.Millisecond}}
	must.Do(t, s.addRecord(r, nothing{}))
	if want := -3 * time.Millisecond; r.ClockMoved != want || r.Sent != time.Second+2*time.Millisecond || r.Events[0].At != 1497*time.Millisecond || r.End != 1997*time.Millisecond {
		t.Errorf("%+v", r.Timeline)
	}
	if r.Due != time.Second || r.Head != tacho.Never {
		t.Errorf("what the schedule says, and what never came, have moved: %+v", r.Timeline)
	}
	if a := s.report(&levelRun{}); a.Moved != -3*time.Millisecond || a.Offset != 7*time.Second || a.OffsetErr < time.Millisecond {
		t.Errorf("%+v", a)
	}
}
