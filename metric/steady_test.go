package metric_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
)

// request returns a successful request of three tokens, from sent to end.
func request(sent, first, end time.Duration) *tacho.Record {
	r := success(3, first-sent, (first+end)/2-sent, end-sent)
	shift := sent - r.Sent
	for _, m := range []*time.Duration{&r.Due, &r.Slot, &r.Start, &r.Conn, &r.Sent, &r.Wrote, &r.Head, &r.End} {
		*m += shift
	}
	for i := range r.Events {
		r.Events[i].At = []time.Duration{first, (first + end) / 2, end}[i]
	}
	r.Due, r.Slot, r.End = sent, sent, end
	return r
}

// closedLoop returns n requests of about a second, sent by users in a closed loop.
func closedLoop(users, n int) []*tacho.Record {
	rng := rand.New(rand.NewPCG(uint64(users), uint64(n)))
	free := make([]time.Duration, users)
	var out []*tacho.Record
	for range n {
		next := 0
		for i := range free {
			if free[i] < free[next] {
				next = i
			}
		}
		sent := free[next]
		free[next] = sent + time.Second/2 + time.Duration(rng.Int64N(int64(time.Second)))
		out = append(out, request(sent, sent+100*ms, free[next]))
	}
	return out
}

// The minimum length of a steady state can be configured, and the steady state can be disabled.
func TestSteadyAsked(t *testing.T) {
	c := metric.DefaultConfig()
	c.MaxConcurrency = 10
	records := closedLoop(10, 500)
	for least, want := range map[float64]bool{0: false, 40: false, 60: true} {
		c.SteadyMinS = &least
		if got := sumUp(c, records...).Steady; (got.Window == nil) != want || (got.WhyNot == metric.ShortWindow) != want {
			t.Errorf("%.0f s asked for, %+v (%s) found", least, got.Window, got.WhyNot)
		}
	}
	if c.NoSteady = true; sumUp(c, records...).Steady != nil {
		t.Error("nobody asked")
	}
}

// A closed loop is in steady state while it is full, and Little's law holds then.
func TestSteadyClosed(t *testing.T) {
	c := metric.DefaultConfig()
	c.MaxConcurrency = 10
	records := closedLoop(10, 500)
	s := sumUp(c, records...)
	w := s.Steady.Window
	if w == nil || s.Steady.WhyNot != "" {
		t.Fatalf("no window: %+v", s.Steady)
	}
	// The tenth request makes ten in flight, at 0. The first end after the last begin leaves nine.
	last := records[len(records)-1].Sent
	to := time.Duration(math.MaxInt64)
	for _, r := range records {
		if r.Last() > last {
			to = min(to, r.Last())
		}
	}
	if w.Least != 10 || w.FromS != 0 || w.ToS != to.Seconds() {
		t.Errorf("got %+v, want from 0 to %v with 10 in flight", w, to)
	}
	if w.Requests != 500 || w.Share != 1 || w.Completed != 490 {
		t.Errorf("%d requests (%v), %d completed; want all 500, and 490 that ended before", w.Requests, w.Share, w.Completed)
	}
	if got := w.OutputTokensPerS / w.RequestsPerS; math.Abs(got-3) > 0.1 {
		t.Errorf("%v tokens a request, want 3", got)
	}
	if got := w.Dist(metric.TTFT).Stats.Mean; math.Abs(got-100) > 1e-6 {
		t.Errorf("TTFT %v, want 100", got)
	}
	if l := s.Steady.Little; math.Abs(l.InFlight-10) > 0.01 || math.Abs(l.Off) > 0.03 {
		t.Errorf("Little's law: %+v, want 10 in flight and both sides equal", l)
	}

	c.SteadyThreshold = 0.5
	if w := sumUp(c, records...).Steady.Window; w.Least != 5 || w.ToS <= to.Seconds() {
		t.Errorf("half full: %+v, want a longer window than to %v", w, to)
	}
	c.MaxConcurrency, c.SteadyThreshold = 100, 0
	if got := sumUp(c, records...).Steady; got.Window != nil || got.WhyNot != metric.NeverFull {
		t.Errorf("a limit of 100: %+v", got)
	}
	// Two waves: as many requests are active at the ends as in between.
	c.MaxConcurrency = 50
	if got := sumUp(c, closedLoop(50, 100)...).Steady; got.Window != nil || got.WhyNot != metric.LittleIsOff || got.Little == nil {
		t.Errorf("two waves: %+v, want no window", got)
	}
}

// queue simulates a server that serves one request at a time and receives n requests at a rate.
func queue(rng *rand.Rand, n int, perS float64, service func(i int) time.Duration) []*tacho.Record {
	var out []*tacho.Record
	at, free := time.Duration(0), time.Duration(0)
	for i := range n {
		at += time.Duration(rng.ExpFloat64() / perS * 1e9)
		began := max(at, free)
		free = began + service(i)
		out = append(out, request(at, began+10*ms, free))
	}
	return out
}

func TestSteadyOpen(t *testing.T) {
	c := metric.DefaultConfig()
	c.RequestRate = 10
	even := func(int) time.Duration { return 40 * ms }
	balanced := 0
	for seed := range uint64(40) {
		s := sumUp(c, queue(rand.New(rand.NewPCG(seed, 1)), 1000, 10, even)...)
		if w := s.Steady.Window; w != nil && math.Abs(s.Steady.Little.Off) < 0.05 && w.Share > 0.45 {
			balanced++
		}
	}
	if balanced < 36 {
		t.Errorf("%d of 40 runs far below the limit are in balance", balanced)
	}
	for name, trial := range map[string]struct {
		service func(i int) time.Duration
		why     string
	}{
		"over the limit": {func(int) time.Duration { return 130 * ms }, metric.OverSaturate},
		"ever slower":    {func(i int) time.Duration { return 20*ms + time.Duration(i)*40*time.Microsecond }, metric.StillMoving},
	} {
		s := sumUp(c, queue(rand.New(rand.NewPCG(1, 2)), 1000, 10, trial.service)...)
		if s.Steady.Window != nil || s.Steady.WhyNot != trial.why || s.Steady.Little == nil {
			t.Errorf("%s: %+v, want %q", name, s.Steady, trial.why)
		}
	}
}

// A slow start is reported as a warm-up; an ordinary start is not.
func TestWarmUp(t *testing.T) {
	c := metric.DefaultConfig()
	c.MaxConcurrency = 10
	records := closedLoop(10, 500)
	if w := sumUp(c, records...).Steady.WarmUp; w != nil {
		t.Errorf("all alike: %+v", w)
	}
	for i, r := range records[:40] {
		r.Events[0].At += time.Duration(200-i) * ms
	}
	w := sumUp(c, records...).Steady.WarmUp
	if w == nil || w.Requests != 40 || w.Metric != "ttft" || math.Abs(w.RestMillis-100) > 1e-6 || w.FirstMillis < 250 {
		t.Errorf("40 slow ones: %+v", w)
	}
}

// A pause is not a warm-up, wherever it is. A start is not a warm-up if the run is like it later.
func TestPauseIsNoStart(t *testing.T) {
	c := metric.DefaultConfig()
	c.MaxConcurrency = 10
	for name, slow := range map[string]func(i int) bool{
		"a pause in the middle":     func(i int) bool { return i >= 230 && i < 250 },
		"a pause after a few":       func(i int) bool { return i >= 30 && i < 70 },
		"the first half":            func(i int) bool { return i < 240 },
		"a start and a later pause": func(i int) bool { return i < 40 || i >= 300 && i < 390 },
	} {
		records := closedLoop(10, 500)
		for i, r := range records {
			if slow(i) {
				r.Events[0].At += 200 * ms
			}
		}
		if w := sumUp(c, records...).Steady.WarmUp; w != nil {
			t.Errorf("%s: %+v", name, w)
		}
	}
	records := closedLoop(10, 500)
	for _, r := range records[:40] {
		r.Events[0].At -= 50 * ms
	}
	if w := sumUp(c, records...).Steady.WarmUp; w == nil || w.FirstMillis > w.RestMillis {
		t.Errorf("40 fast ones: %+v", w)
	}
}

func TestSteadyNot(t *testing.T) {
	c := metric.DefaultConfig()
	if s := sumUp(c); s.Steady != nil {
		t.Errorf("of nothing: %+v", s.Steady)
	}
	var burst []*tacho.Record
	for i := range 100 {
		burst = append(burst, request(time.Duration(i)*ms/100, 100*ms+time.Duration(i)*ms, time.Second))
	}
	if got := sumUp(c, burst...).Steady; got.Window != nil || got.WhyNot != metric.AllAtOnce {
		t.Errorf("a burst: %+v", got)
	}
	if got := sumUp(c, closedLoop(2, 20)...).Steady; got.WhyNot != metric.TooShort {
		t.Errorf("20 requests: %+v", got)
	}
}
