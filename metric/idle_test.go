package metric_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
)

// slotsOf simulates a closed loop with this number of slots. Requests take 20 ms. The client needs
// turn(at) from the end of an answer to the next request.
func slotsOf(slots, requests int, turn func(at time.Duration) time.Duration) metric.Summary {
	c := metric.DefaultConfig()
	c.MaxConcurrency = slots
	var sum metric.Accumulator
	free := make([]time.Duration, slots)
	for i := range requests {
		slot := 0
		for k := range free {
			if free[k] < free[slot] {
				slot = k
			}
		}
		ended := free[slot]
		at := ended
		if i >= slots {
			at += turn(at)
		}
		r := sentAt(i, at, 1)
		r.Start, r.Conn, r.Reused = ended, at, true // late with an open connection
		r.End = at + 20*time.Millisecond
		r.Events = []tacho.Event{{At: r.End}}
		free[slot] = r.End
		_ = sum.Add(r) // in memory, cannot fail
	}
	return sum.Summary(c)
}

// sentAt returns a request sent at its due time.
func sentAt(i int, at time.Duration, tokens int) *tacho.Record {
	r := tacho.NewRecord(0, &tacho.Request{Session: uint64(i)}, at)
	r.Slot, r.Start, r.Sent, r.Wrote, r.Output, r.Clock = at, at, at, at, tokens, tacho.KernelClock
	return r
}

// TestIdleSlots: a client stopped in short pulses fills its slots late, and the server serves less. The
// summary states the possible throughput.
func TestIdleSlots(t *testing.T) {
	t.Parallel()
	const usual = 200 * time.Microsecond
	prompt := func(time.Duration) time.Duration { return usual }
	pulsed := func(at time.Duration) time.Duration { // stopped for 60 of every 120 ms
		if phase := at % (120 * time.Millisecond); phase < 60*time.Millisecond {
			return usual + 60*time.Millisecond - phase
		}
		return usual
	}
	for _, n := range []int{1000, 70_000} { // the second run keeps a sample of marks
		quick, slow := slotsOf(4, n, prompt), slotsOf(4, n, pulsed)
		idleIs(t, &quick, &slow)
	}
}

// idleIs checks the results for a prompt client and for one stopped half of the time.
func idleIs(t *testing.T, quick, slow *metric.Summary) {
	t.Helper()
	if quick.Idle == nil || slow.Idle == nil {
		t.Fatal("idle slots are not known")
	}
	if quick.Idle.Excess > 1e-9 || quick.Idle.Share < 0.009 || quick.Idle.Share > 0.011 {
		t.Errorf("a prompt client: %+v", *quick.Idle)
	}
	if could, want := slow.Throughput.RequestsPerS/(1-slow.Idle.Share), 4/0.020; could < 0.97*want || could > 1.03*want {
		t.Errorf("the server could have served %.1f req/s, want %.1f: %+v", could, want, *slow.Idle)
	}
	if found := code(slow.Verdict, "idle-slots"); found != metric.Invalid {
		t.Errorf("a client that is stopped for half of the time: idle-slots is %q", found)
	}
	if found := code(quick.Verdict, "idle-slots"); found != "" {
		t.Errorf("a prompt client: idle-slots is %s", found)
	}
}

// TestIdleSlotsNeedAClosedLoop: at a fixed rate, slots are empty because no request is due.
func TestIdleSlotsNeedAClosedLoop(t *testing.T) {
	t.Parallel()
	c := metric.DefaultConfig()
	c.MaxConcurrency, c.RequestRate = 4, 10
	var sum metric.Accumulator
	for i := range 200 {
		at := time.Duration(i) * 100 * time.Millisecond
		r := sentAt(i, at, 1)
		r.End = at + 20*time.Millisecond
		_ = sum.Add(r) // cannot fail
	}
	if s := sum.Summary(c); s.Idle != nil {
		t.Errorf("an open loop has idle slots: %+v", *s.Idle)
	}
}

// code returns the severity of the reason with a code, or "" if there is none.
func code(v metric.Verdict, code string) metric.Severity {
	for _, r := range v.Reasons {
		if r.Code == code {
			return r.Severity
		}
	}
	return ""
}

// An arrival returns when event k of an answer arrives.
type arrival func(k int) time.Duration

// answers summarizes 50 answers, each changed by alter.
func (a arrival) answers(tokens, events int, alter func(*tacho.Record)) metric.Summary {
	var sum metric.Accumulator
	for i := range 50 {
		sent := time.Duration(i) * 30 * time.Second
		r := sentAt(i, sent, tokens)
		for k := range events {
			r.Events = append(r.Events, tacho.Event{At: sent + a(k)})
		}
		r.End = r.Last()
		alter(r)
		_ = sum.Add(r) // cannot fail
	}
	return sum.Summary(metric.DefaultConfig())
}

// lumps is an answer in bursts of n events, one burst in each period.
func lumps(first time.Duration, n int, every time.Duration) arrival {
	return func(k int) time.Duration { return first + time.Duration(k/n)*every }
}

// lateFrom is a stream with all events from one on together, a second late.
func lateFrom(late int, a arrival) arrival {
	return func(k int) time.Duration {
		if k < late {
			return a(k)
		}
		return a(late) + time.Second
	}
}

// TestBufferedStreams distinguishes buffered answers from streamed answers, however short or fast.
func TestBufferedStreams(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		arrival        arrival
		tokens, events int
		want           metric.Severity
	}{
		"nginx, short answers":           {lumps(250*ms, 1, 2*time.Microsecond), 20, 20, metric.Invalid},
		"nginx with buffers of 4 KiB":    {lumps(400*ms, 14, 300*ms), 40, 40, metric.Invalid},
		"one event with the answer":      {lumps(250*ms, 1, 0), 20, 1, metric.Invalid},
		"a long answer behind a gateway": {lumps(8*time.Second, 1, 100*time.Microsecond), 1000, 1000, metric.Invalid},
		"a stream":                       {lumps(60*ms, 1, 10*ms), 20, 20, ""},
		"a long prompt and few tokens":   {lumps(20*time.Second, 1, 15*ms), 10, 10, ""},
		"a very fast engine":             {lumps(30*ms, 1, 400*time.Microsecond), 100, 100, ""},
		"hardly any tokens":              {lumps(60*ms, 4, 0), 4, 4, ""},
		"an answer that takes no time":   {lumps(ms, 20, 0), 20, 20, ""},
		"several tokens in every event":  {lumps(60*ms, 1, 40*ms), 20, 5, ""},
		"eight steps at once":            {lumps(60*ms, 8, 100*ms), 64, 64, ""},
		"a server that was late once":    {lateFrom(1, lumps(60*ms, 1, 10*ms)), 60, 60, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.arrival.answers(c.tokens, c.events, func(*tacho.Record) {})
			if got := code(s.Verdict, "buffered"); got != c.want {
				t.Errorf("buffered is %q, want %q", got, c.want)
			}
		})
	}
}

// TestLumps: answers in lumps get a reason that names their size, except if the client read the events
// of a lump late, and cannot know whether they arrived together.
func TestLumps(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	exact := func(*tacho.Record) {}
	// late merges the events as a client does that was stopped between them.
	late := func(slack time.Duration) func(*tacho.Record) {
		return func(r *tacho.Record) {
			for i := range r.Events[1:] {
				if r.Events[i].At == r.Events[i+1].At {
					r.Events[i].Slack = tacho.SlackOf(slack)
				}
			}
		}
	}
	for name, c := range map[string]struct {
		arrival arrival
		events  int
		alter   func(*tacho.Record)
		want    string // codes and beginnings of the texts
	}{
		"one by one":                      {lumps(50*ms, 1, 20*ms), 60, exact, ""},
		"pairs":                           {lumps(50*ms, 2, 40*ms), 60, exact, "unexplained-lumps: 100 % of answers came in lumps of 2 events, 40 ms apart"},
		"nine":                            {lumps(50*ms, 9, 180*ms), 60, exact, "unexplained-lumps: 100 % of answers came in lumps of 8.57 events, 180 ms apart"},
		"eleven":                          {lumps(50*ms, 11, 220*ms), 66, exact, "unexplained-lumps: 100 % of answers came in lumps of 11 events, 220 ms apart"},
		"twelve":                          {lumps(50*ms, 12, 240*ms), 60, exact, "buffered: 100 % of answers arrived in bursts of 12 events"},
		"twenty":                          {lumps(50*ms, 20, 400*ms), 60, exact, "buffered: 100 % of answers arrived in bursts of 20 events"},
		"a hold of 25 ms at gaps of 20":   {func(k int) time.Duration { return 50*ms + time.Duration(k*20/30*30)*ms }, 60, exact, "unexplained-lumps: 100 % of answers came in lumps of 1.5 events, 30 ms apart"},
		"a server that was late once":     {lateFrom(30, lumps(60*ms, 1, 10*ms)), 60, exact, ""},
		"a very fast engine":              {lumps(30*ms, 4, ms), 100, exact, ""},
		"short answers":                   {lumps(30*ms, 4, 80*ms), 7, exact, ""},
		"nine, a client that polls":       {lumps(50*ms, 9, 180*ms), 60, late(5 * ms), "unexplained-lumps: 100 % of answers came in lumps of 8.57 events, 180 ms apart"},
		"a client stopped for 180 ms":     {lumps(180*ms, 9, 180*ms), 60, late(180 * ms), ""},
		"a client stopped for 400 ms":     {lumps(400*ms, 20, 400*ms), 60, late(380 * ms), ""},
		"a client stopped for the answer": {lumps(400*ms, 20, 400*ms), 20, late(400 * ms), ""},
		"twenty, a client that polls":     {lumps(50*ms, 20, 400*ms), 60, late(5 * ms), "buffered: 100 % of answers arrived in bursts of 20 events"},
		"a count of 1e18":                 {lumps(50*ms, 20, 400*ms), 60, func(r *tacho.Record) { r.Output = 1e18 }, "buffered: 100 % of answers arrived in bursts of 20 events"},
		"times of the read": {lumps(50*ms, 9, 180*ms), 60, func(r *tacho.Record) {
			late(180 * ms)(r)
			r.Clock = tacho.ReadClock
		}, "unexplained-lumps: 100 % of answers came in lumps of 8.57 events, 180 ms apart"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, r := range c.arrival.answers(c.events, c.events, c.alter).Verdict.Reasons {
				if slices.Contains([]string{"buffered", "lumps", "unexplained-lumps", "held-back"}, r.Code) {
					what, _, _ := strings.Cut(strings.Replace(r.Text, ", from", ":", 1), ":")
					got = append(got, r.Code+": "+what)
				}
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
