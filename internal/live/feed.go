package live

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/metric"
)

// A Tick is the measurement of one load generator over a short time. Ticks of several
// generators can be added.
type Tick struct {
	Seq  int           `json:"seq"`     // number in the level, shared by all generators
	At   time.Duration `json:"at_ns"`   // end of the tick since the level began
	Span time.Duration `json:"span_ns"` // length of the tick

	Totals           // during the tick
	TTFT   Bins      `json:"ttft,omitempty"`
	ITL    Bins      `json:"itl,omitempty"`
	TPOT   Bins      `json:"tpot,omitempty"` // of finished requests, as E2EL
	E2EL   Bins      `json:"e2el,omitempty"`
	Failed []Failure `json:"failures,omitempty"`
	Server *Server   `json:"server,omitempty"`

	Client *metric.Client `json:"client,omitempty"` // CPU and scheduling of the generator since the level began

	judged judged // of the requests that finished
}

// A Feed collects the events of a level in one load generator. Token and Add are fast
// and safe for concurrent use.
type Feed struct {
	Counts engine.Live

	// Server and Client are called at each tick. Both may be nil.
	Server func() *Server
	Client func() *metric.Client

	ttft, itl, tpot, e2el counter
	virtual               atomic.Int64 // latest end of a request in virtual time

	mu       sync.Mutex
	judged   judged
	failures map[string]*Failure

	seq  int
	at   time.Duration
	last Totals
}

// Token counts n tokens that arrived in one event. after is the time since the request
// was sent if first is set, otherwise since the previous event.
func (f *Feed) Token(n int, first bool, after time.Duration) {
	f.Counts.Tokens.Add(int64(n))
	if first {
		f.ttft.add(after, 1)
		n--
		after = 0
	}
	if n > 0 {
		f.itl.add(after, 1)
	}
	if n > 1 {
		f.itl.add(0, int64(n-1))
	}
}

// single counts n tokens that each arrived alone, after gaps in the same bin.
func (f *Feed) single(bin int, n int64) {
	if n > 0 {
		f.Counts.Tokens.Add(n)
		f.itl[bin].Add(n)
	}
}

// Add counts a finished request.
func (f *Feed) Add(r *tacho.Record) {
	f.whole(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.judged.record(r)
	if r.Failure == nil || r.Failure.Cause == tacho.Canceled {
		return
	}
	one := Failure{Cause: string(r.Failure.Cause), Status: r.Failure.Status, Count: 1, LastS: r.End.Seconds(), Text: r.Failure.Message}
	if f.failures == nil {
		f.failures = map[string]*Failure{}
	}
	one.addTo(f.failures)
}

// whole counts the latencies that are known when a request has finished.
func (f *Feed) whole(r *tacho.Record) {
	add := func(to *counter) func(float64) {
		return func(ms float64) { to.add(time.Duration(ms*1e6), 1) }
	}
	metric.TPOT.Of(r, add(&f.tpot))
	metric.E2EL.Of(r, add(&f.e2el))
}

// AddLatencies adds the latencies of another load generator's tick. The coordinator adds
// the totals itself, because it counts all generators.
func (f *Feed) AddLatencies(t Tick) {
	for _, c := range []struct {
		to   *counter
		bins Bins
	}{{&f.ttft, t.TTFT}, {&f.itl, t.ITL}, {&f.tpot, t.TPOT}, {&f.e2el, t.E2EL}} {
		for bin, n := range c.bins {
			if bin >= 0 && bin < bins {
				c.to[bin].Add(n)
			}
		}
	}
}

// Sent counts a request that was sent in virtual time.
func (f *Feed) Sent() { f.Counts.Started.Add(1) }

// Computed counts a finished request in virtual time, after a call of Sent. The end of
// the request is the current virtual time.
func (f *Feed) Computed(r *tacho.Record) {
	f.Counts.Finished.Add(1)
	if !r.OK() {
		f.Counts.Failed.Add(1)
	}
	if r.Turn+1 >= r.Turns || !r.OK() {
		f.Counts.Sessions.Add(1)
	}
	f.tokens(r)
	f.whole(r)
	f.virtual.Store(max(f.virtual.Load(), int64(r.End)))
}

// tokens counts all tokens of a request. Consecutive gaps in the same bin are added in
// one step, because the counters are atomic and an answer has many equal gaps.
func (f *Feed) tokens(r *tacho.Record) {
	before, bin, n := r.Sent, 0, int64(0)
	for i := range r.Events {
		e := &r.Events[i]
		after := e.At - before
		before = e.At
		if i == 0 || e.Tokens > 1 {
			f.Token(max(int(e.Tokens), 1), i == 0, after)
			continue
		}
		if b := binOf(after); b != bin {
			f.single(bin, n)
			bin, n = b, 0
		}
		n++
	}
	f.single(bin, n)
}

// InFlight returns the number of requests in flight.
func (f *Feed) InFlight() int {
	return int(f.Counts.Started.Load() - f.Counts.Finished.Load())
}

// Tick returns the measurement since the last tick. at is the time since the level
// began; in virtual time it is replaced with the virtual time.
func (f *Feed) Tick(at time.Duration) Tick {
	if computed := f.virtual.Load(); computed > 0 {
		at = time.Duration(computed)
	}
	now := Totals{
		Finished: f.Counts.Finished.Load(), Failed: f.Counts.Failed.Load(), Sessions: f.Counts.Sessions.Load(), Tokens: f.Counts.Tokens.Load(),
	}
	now.Sent = f.Counts.Started.Load() // loaded last, so that Sent is never below Finished
	t := Tick{Seq: f.seq, At: at, Span: at - f.at, TTFT: f.ttft.take(), ITL: f.itl.take(), TPOT: f.tpot.take(), E2EL: f.e2el.take()}
	t.Totals = now.less(f.last)
	f.seq, f.at, f.last = f.seq+1, at, now
	f.mu.Lock()
	for _, key := range slices.Sorted(maps.Keys(f.failures)) {
		t.Failed = append(t.Failed, *f.failures[key])
	}
	t.judged, f.judged, f.failures = f.judged, judged{}, nil
	f.mu.Unlock()
	if f.Server != nil {
		t.Server = f.Server()
	}
	if f.Client != nil {
		t.Client = f.Client()
	}
	return t
}

func (t Totals) less(o Totals) Totals {
	return Totals{t.Sent - o.Sent, t.Finished - o.Finished, t.Failed - o.Failed, t.Sessions - o.Sessions, t.Tokens - o.Tokens}
}

// Plus returns the sum of two totals.
func (t Totals) Plus(o Totals) Totals {
	return Totals{t.Sent + o.Sent, t.Finished + o.Finished, t.Failed + o.Failed, t.Sessions + o.Sessions, t.Tokens + o.Tokens}
}

// addTo adds the failure to the failures of the same kind.
func (f *Failure) addTo(list map[string]*Failure) {
	key := f.Cause + " " + strconv.Itoa(f.Status)
	had := list[key]
	switch {
	case had != nil:
		f.Count += had.Count
		if had.LastS > f.LastS {
			f.LastS, f.Text = had.LastS, had.Text
		}
	case len(list) >= 50:
		return
	}
	list[key] = f
}
