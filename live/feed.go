package live

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"tacho"
	"tacho/engine"
	"tacho/metric"
)

// A Tick is what one load generator saw in a short time. Ticks add up, so that
// those of several generators make one.
type Tick struct {
	Seq  int           `json:"seq"`     // its number in the level, which those of all generators share
	At   time.Duration `json:"at_ns"`   // where it ends, since the level began
	Span time.Duration `json:"span_ns"` // how long it was

	Totals            // in it
	Retried int64     `json:"retried,omitempty"` // requests sent more than once
	TTFT    Bins      `json:"ttft,omitempty"`
	ITL     Bins      `json:"itl,omitempty"`
	Lag     Bins      `json:"lag,omitempty"` // from when requests were due until they were sent
	Failed  []Failure `json:"failures,omitempty"`
	Server  *Server   `json:"server,omitempty"`

	Client *metric.Client `json:"client,omitempty"` // how the generator fared, since the level began
}

// A Feed gathers what happens in a level. Tokens and Add may come from any
// goroutine, and are quick.
type Feed struct {
	Counts engine.Live

	// What is asked at each tick; both may be nil.
	Server func() *Server
	Client func() *metric.Client

	ttft, itl, lag counter
	resent         atomic.Int64
	virtual        atomic.Int64 // the latest end of what was only computed

	mu       sync.Mutex
	failures map[string]*Failure

	seq  int
	at   time.Duration
	last Totals
}

// Token takes in a token that arrived: after so long since the request was sent
// if it is the first of its answer, else since the one before. N is how many came
// at once.
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

// single takes in n tokens that came alone, after gaps of one bin.
func (f *Feed) single(bin int, n int64) {
	if n > 0 {
		f.Counts.Tokens.Add(n)
		f.itl[bin].Add(n)
	}
}

// Add takes in a request that is over.
func (f *Feed) Add(r *tacho.Record) {
	if r.Sent != tacho.Never && r.Failure == nil {
		f.lag.add(r.Sent-max(r.Due, r.Slot), 1)
	}
	if r.Attempts > 1 {
		f.resent.Add(1)
	}
	if r.Failure == nil || r.Failure.Cause == tacho.Canceled {
		return
	}
	one := Failure{Cause: string(r.Failure.Cause), Status: r.Failure.Status, Count: 1, LastS: r.End.Seconds(), Text: r.Failure.Message}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures == nil {
		f.failures = map[string]*Failure{}
	}
	one.addTo(f.failures)
}

// Saw takes in what another load generator saw in a tick, but for its totals:
// those are kept by whoever knows all generators.
func (f *Feed) Saw(t Tick) {
	for _, c := range []struct {
		to   *counter
		bins Bins
	}{{&f.ttft, t.TTFT}, {&f.itl, t.ITL}} {
		for bin, n := range c.bins {
			if bin >= 0 && bin < bins {
				c.to[bin].Add(n)
			}
		}
	}
}

// Sent notes that a request was sent in virtual time.
func (f *Feed) Sent() { f.Counts.Started.Add(1) }

// Computed takes in a request of virtual time, of which Sent was called before. Its
// end is the current virtual time.
func (f *Feed) Computed(r *tacho.Record) {
	f.Counts.Finished.Add(1)
	if !r.OK() {
		f.Counts.Failed.Add(1)
	}
	if r.Turn+1 >= r.Turns || !r.OK() {
		f.Counts.Sessions.Add(1)
	}
	f.tokens(r)
	f.virtual.Store(max(f.virtual.Load(), int64(r.End)))
}

// tokens takes in all tokens of a request. Gaps of one bin that follow each other are
// added at once, because the counters are atomic and an answer has many equal gaps.
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

// InFlight is how many requests are under way.
func (f *Feed) InFlight() int {
	return int(f.Counts.Started.Load() - f.Counts.Finished.Load())
}

// Tick is what has happened since the last one. At is the time since the level
// began; what is computed has a time of its own.
func (f *Feed) Tick(at time.Duration) Tick {
	if computed := f.virtual.Load(); computed > 0 {
		at = time.Duration(computed)
	}
	now := Totals{
		Finished: f.Counts.Finished.Load(), Failed: f.Counts.Failed.Load(), Sessions: f.Counts.Sessions.Load(), Tokens: f.Counts.Tokens.Load(),
	}
	now.Sent = f.Counts.Started.Load() // after those that finished, or there might be more of these
	t := Tick{Seq: f.seq, At: at, Span: at - f.at, Retried: f.resent.Swap(0), TTFT: f.ttft.take(), ITL: f.itl.take(), Lag: f.lag.take()}
	t.Totals = now.less(f.last)
	f.seq, f.at, f.last = f.seq+1, at, now
	f.mu.Lock()
	for _, key := range slices.Sorted(maps.Keys(f.failures)) {
		t.Failed = append(t.Failed, *f.failures[key])
	}
	f.failures = nil
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

// Plus adds up.
func (t Totals) Plus(o Totals) Totals {
	return Totals{t.Sent + o.Sent, t.Finished + o.Finished, t.Failed + o.Failed, t.Sessions + o.Sessions, t.Tokens + o.Tokens}
}

// mostFailures bounds how many kinds of failure are told apart.
const mostFailures = 50

// addTo adds the failure to those that are alike.
func (f *Failure) addTo(list map[string]*Failure) {
	key := f.Cause + " " + strconv.Itoa(f.Status)
	had := list[key]
	switch {
	case had != nil:
		f.Count += had.Count
		if had.LastS > f.LastS {
			f.LastS, f.Text = had.LastS, had.Text
		}
	case len(list) >= mostFailures:
		return
	}
	list[key] = f
}
