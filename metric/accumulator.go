package metric

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

// An Accumulator is a Sink that summarizes records. The zero value is ready to use.
//
// A summary depends on the set of records, never on their order, so accumulators can be merged, and a
// cluster is summarized like one machine. The Accumulator keeps the timestamps of a record, about 110
// bytes, and in a long run only the timestamps of a sample. Values with many per record, such as gaps between
// tokens, go into digests with bounded memory. Below that bound every quantile is exact; above it the
// summary states the error.
type Accumulator struct {
	Goodput []SLO   // conditions of a good request; set before the first Add
	Stall   float64 // gaps longer than this many milliseconds are stalls; 0 means DefaultStallMillis; set before the first Add
	Limit   int     // observations of one metric that are kept individually; 0 means stat.ExactLimit

	marks     []marks
	maxMarks  int // number of marks kept; 0 means marksLimit; only tests set it
	sampling  sampling
	dues      span // of requests that were sent
	sents     span
	inFlight  time.Duration // sum over all requests that were sent, including the time to connect
	whole     part          // for all of All
	apart     bool          // gaps per token differ from gaps between events; until then they are stored once
	bounds    bounds
	series    series // for all of All
	parts     parts
	failures  map[failureKey]FailureGroup
	finishes  map[string]int
	sessions  sessions
	clock     clockUse
	network   NetworkUse
	arrivals  arrivals
	cache     CacheUse
	buffered  Buffering
	activity  activity // of all servers
	replicas  replicas
	begun     int // sessions
	good      int
	stalled   int
	audio     stat.Digest // seconds of audio in successful requests
	metrics   []*Metric   // All, with the stall threshold applied
	values    values      // values of Classic for the record being added
	columns   []column
	collector collector
	tally     tally
}

var _ tacho.Sink = (*Accumulator)(nil)

// marks are the timestamps of one request.
type marks struct {
	due, slot, sent, first, last, end time.Duration
	turn, input, fresh, output        int32 // fresh is the part of input that was not in the server's cache
	ok, good                          bool  // good: kept the conditions of goodput
	session                           uint64
	connect                           time.Duration      // time to connect
	server                            *tacho.ServerTimes // nil if the server reports no times
	endpoint                          string
}

func marksOf(r *tacho.Record) marks {
	m := marks{session: r.Session, due: r.Due, slot: r.Slot, sent: r.Sent, first: r.First(), last: r.Last(), end: r.End, turn: int32(r.Turn), input: small(InputTokens(r)), output: small(r.Output), ok: r.OK(), endpoint: r.Endpoint}
	m.fresh = m.input
	if r.Usage != nil {
		m.fresh -= min(small(r.Usage.Cached), m.input)
	}
	if !r.Reused && r.Start != tacho.Never && r.Conn != tacho.Never { // with a reused connection, the time until it is ready is a delay of the client
		m.connect = r.Conn - r.Start
	}
	if r.Server != nil {
		times := *r.Server
		m.server = &times
	}
	return m
}

// small converts the token count of one request. A server may report nonsense.
func small(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

// streamed reports whether m belongs to a successful streamed request.
func (m *marks) streamed() bool { return m.ok && m.sent != tacho.Never && m.first != tacho.Never }

// Add implements tacho.Sink.
func (a *Accumulator) Add(r *tacho.Record) error {
	if r.Turn == 0 {
		a.begun++
	}
	m := marksOf(r)
	m.good = r.OK() && !slices.ContainsFunc(a.Goodput, func(slo SLO) bool { return !slo.KeptBy(r) })
	if m.good {
		a.good++
	}
	a.mark(m)
	a.whole.ready(len(All), a.Limit)
	a.series.ready(len(All))
	a.measure(r)
	a.parts.add(r, a.values, &a.whole)
	a.bounds.add(r, a.values, a.whole.digests)
	a.whole.add(r, a.values, a.Limit)
	a.series.add(r, a.values)
	a.addFailure(r)
	a.sessions.add(r)
	a.clock.add(r)
	a.network.add(r)
	a.arrivals.add(r, a.Limit)
	a.cache.add(r)
	a.buffered.add(r)
	a.activity.add(r)
	a.replicas.add(r)
	if r.OK() {
		if a.finishes == nil {
			a.finishes = map[string]int{}
		}
		a.finishes[r.Finish]++
		if r.AudioS > 0 {
			a.audio.Add(r.AudioS)
		}
	}
	return nil
}

// measure computes the values of r.
func (a *Accumulator) measure(r *tacho.Record) {
	if a.metrics == nil {
		a.metrics = WithStalls(a.Stall)
	}
	skip := -1
	if !a.apart && singleTokens(r) {
		skip = tokenGapAt
	} else if !a.apart {
		a.splitTokenGaps()
	}
	if a.values == nil {
		a.values = make(values, classicCount)
	}
	a.values.of(r, Classic, &a.collector)
	a.addToColumns(r, skip)
}

// singleTokens reports whether every event of r after the first has one token, so that gaps per token
// equal gaps between events.
func singleTokens(r *tacho.Record) bool {
	for i := 1; i < len(r.Events); i++ {
		if r.Events[i].Tokens != 1 && tokensIn(r, i) != 1 {
			return false
		}
	}
	return true
}

// splitTokenGaps starts to store the gaps per token. If every event has one token, they equal the gaps
// between events, and no other metric has as many values.
func (a *Accumulator) splitTokenGaps() {
	a.apart = true
	if len(a.series) > 0 {
		a.whole.digests[tokenGapAt].Merge(&a.whole.digests[indexITL])
		a.series[tokenGapAt].Merge(&a.series[indexITL])
	}
}

// mergeGaps merges the gaps per token of b. The other metrics are merged later.
func (a *Accumulator) mergeGaps(b *Accumulator) {
	if !a.apart && !b.apart || len(b.series) == 0 {
		return
	}
	a.whole.readyFor(&b.whole)
	if !a.apart {
		a.splitTokenGaps()
	}
	if !b.apart { // the token gaps of b are empty
		a.whole.digests[tokenGapAt].Merge(&b.whole.digests[indexITL])
		a.series.ready(len(b.series))
		a.series[tokenGapAt].Merge(&b.series[indexITL])
	}
}

// dists returns all distributions.
func (a *Accumulator) dists(percentiles []float64, in balanced) []Dist {
	out := a.whole.summarize(All, percentiles, a.series, in)
	if !a.apart {
		out[tokenGapAt].N = out[indexITL].N
		if s := out[indexITL].Stats; s != nil {
			same := *s
			same.Percentiles = slices.Clone(s.Percentiles)
			out[tokenGapAt].Stats = &same
		}
	}
	return out
}

// fixedNumber reports whether an open loop sent exactly the planned number of requests.
func fixedNumber(s *Summary) bool {
	c := &s.Config
	return c.RequestRate != 0 && !math.IsInf(c.RequestRate, 1) && !s.LimitBound && !c.Interrupted
}

// Close implements tacho.Sink.
func (a *Accumulator) Close() error { return nil }

// Begun returns the number of sessions with a record of their first turn.
func (a *Accumulator) Begun() int { return a.begun }

// Merge adds the records of b. b does not change.
func (a *Accumulator) Merge(b *Accumulator) {
	a.begun += b.begun
	a.flush()
	b.flush()
	a.mergeMarks(b)
	a.parts.merge(&b.parts, &a.whole, &b.whole)
	a.mergeGaps(b)
	if len(b.whole.digests) > 0 {
		a.whole.readyFor(&b.whole)
		a.bounds.merge(&b.bounds, a.whole.digests, b.whole.digests)
	}
	a.whole.merge(&b.whole)
	a.series.merge(b.series)
	for k, g := range b.failures {
		a.mergeFailure(k, g)
	}
	if a.finishes == nil {
		a.finishes = map[string]int{}
	}
	for reason, n := range b.finishes {
		a.finishes[reason] += n
	}
	a.sessions.merge(&b.sessions)
	a.clock.merge(&b.clock)
	a.network.merge(&b.network)
	a.arrivals.merge(&b.arrivals, a.Limit)
	a.cache.merge(&b.cache)
	a.buffered.merge(&b.buffered)
	a.activity.merge(&b.activity)
	a.replicas.merge(&b.replicas)
	a.good += b.good
	a.stalled += b.stalled
	a.audio.Merge(&b.audio)
}

// Summary summarizes the records added so far.
func (a *Accumulator) Summary(c Config) Summary {
	s := a.Measured(c)
	s.Conclude(nil, nil)
	return s
}

// Measured returns the summary without figures, breakdown and verdict. They need everything that is known about a
// level, so Conclude computes them.
func (a *Accumulator) Measured(c Config) Summary {
	a.flush()
	s := Summary{Config: c, Counts: a.whole.Counts, Begun: a.begun, Tokens: a.whole.tokens}
	s.Failures = slices.SortedFunc(maps.Values(a.failures), func(a, b FailureGroup) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(string(a.Cause), string(b.Cause)), strings.Compare(a.Phase, b.Phase), a.Status-b.Status)
	})
	s.Finishes = finishes(a.finishes)
	s.Endpoints = a.parts.endpoints(c.Percentiles)
	s.Groups = a.parts.groups(c.Percentiles)
	s.Sessions = a.sessions.summary()
	s.Clock, s.Network = a.clock.summary(), a.network
	s.Peaks = a.peaks()
	s.LimitBound = c.MaxConcurrency > 0 && a.peakOverlap(&a.sampling.slots, slot, end) >= c.MaxConcurrency
	s.Rate = rate(a.dues, a.sents)
	origin := due
	if s.LimitBound {
		origin = slot
	}
	s.Drift = drift(a.marks, origin)
	s.Backlog, s.SpreadMillis, s.Cache = a.backlog(c), spread(c, a.marks, a.whole.Requests), a.cache
	s.Buffering, s.Idle = a.buffered, a.idle(c)
	s.Throughput = a.throughput(&s)
	var in balanced
	s.Steady, in = a.steady(&s)
	s.Dists = a.dists(c.Percentiles, in)
	if c.NoSteady {
		s.Steady = nil
	}
	s.Pauses = a.pauses(&s)
	a.bounds.summarize(&s)
	s.Stalled = a.stalled
	s.spent, s.slowest = spending(a.marks)
	s.spent.merge(&a.sampling.spent)
	s.OneIn = int(a.sampling.every)
	return s
}

// Probe summarizes probe records, or returns nil if there is none.
func (a *Accumulator) Probe() *Probe {
	if len(a.marks) == 0 {
		return nil
	}
	s := a.Measured(Config{})
	e2el := s.Classic(E2EL)
	return &Probe{s.Completed, s.Failed, e2el.Median, e2el.Percentile(99), e2el.Max}
}

// failureKey groups failures.
type failureKey struct {
	cause  tacho.Cause
	phase  string
	status int
}

func (a *Accumulator) addFailure(r *tacho.Record) {
	f := r.Failure
	if f == nil || f.Cause == tacho.Canceled {
		return
	}
	k := failureKey{cause: f.Cause, status: f.Status}
	if f.Cause == tacho.Timeout { // the phase explains a timeout
		k.phase = f.Phase
	}
	a.mergeFailure(k, FailureGroup{f.Cause, k.phase, f.Status, 1, max(r.End, 0).Seconds(), f.Message})
}

func (a *Accumulator) mergeFailure(k failureKey, g FailureGroup) {
	if a.failures == nil {
		a.failures = map[failureKey]FailureGroup{}
	}
	before, seen := a.failures[k]
	// If the times are equal, the smaller message wins, so that order does not matter.
	if seen && cmp.Or(cmp.Compare(before.FirstS, g.FirstS), strings.Compare(before.Example, g.Example)) <= 0 {
		g.FirstS, g.Example = before.FirstS, before.Example
	}
	g.Count += before.Count
	a.failures[k] = g
}

func finishes(by map[string]int) []FinishCount {
	var out []FinishCount
	for reason, n := range by {
		out = append(out, FinishCount{reason, n})
	}
	slices.SortFunc(out, func(a, b FinishCount) int {
		return cmp.Or(b.Requests-a.Requests, cmp.Compare(a.Reason, b.Reason))
	})
	return out
}

func (a *Accumulator) throughput(s *Summary) *Throughput {
	if s.DurationS == 0 {
		return nil
	}
	t := &Throughput{
		RequestsPerS:     float64(s.Completed) / s.DurationS,
		OutputTokensPerS: float64(s.Tokens.Output) / s.DurationS,
		TotalTokensPerS:  float64(s.Tokens.Input+s.Tokens.Output) / s.DurationS,
		InputsPerS:       float64(s.Inputs) / s.DurationS,
		AudioSPerS:       a.audio.Sum() / s.DurationS,
	}
	if len(s.Config.Goodput) > 0 {
		perS := float64(a.good) / s.DurationS
		t.GoodPerS = &perS
	}
	return t
}

// A FinishCount is the number of successful requests with one finish reason.
type FinishCount struct {
	Reason   string `json:"reason"` // as sent by the server; empty if it sent none
	Requests int    `json:"requests"`
}

// clockUse counts the clocks of the records.
type clockUse struct {
	ClockUse
	virtual int // simulated requests
	worst   time.Duration
}

// Both limits distinguish a step of the wall clock from slow steering.
const (
	clockStepMin   = time.Millisecond // a smaller step is not visible in a latency
	clockStepShare = 0.001            // of the request's duration: twice the maximum of clock steering
)

func (u *clockUse) add(r *tacho.Record) {
	switch {
	case r.Head == tacho.Never: // nothing received, so nothing stamped
	case r.Clock == tacho.WireClock:
		u.Wire++
		u.WireTimes += 1 + len(r.Events)
		u.FellBack += r.FellBack
	case r.Clock == tacho.KernelClock:
		u.Kernel++
	case r.Clock == tacho.ReadClock:
		u.Read++
	case r.Clock == tacho.VirtualClock:
		u.virtual++
	}
	moved := max(r.ClockStep, -r.ClockStep)
	if moved > clockStepMin && float64(moved) > clockStepShare*float64(r.End-r.Start) {
		u.Steps++
		u.worst = fartherFromZero(u.worst, r.ClockStep)
	}
}

func (u *clockUse) merge(o *clockUse) {
	u.Wire, u.Kernel, u.Read, u.Steps = u.Wire+o.Wire, u.Kernel+o.Kernel, u.Read+o.Read, u.Steps+o.Steps
	u.WireTimes, u.FellBack = u.WireTimes+o.WireTimes, u.FellBack+o.FellBack
	u.virtual += o.virtual
	u.worst = fartherFromZero(u.worst, o.worst)
}

func (u *clockUse) summary() ClockUse {
	out := u.ClockUse
	out.WorstStepS = u.worst.Seconds()
	for _, c := range []struct {
		clock    tacho.Clock
		requests int
	}{{tacho.WireClock, u.Wire}, {tacho.KernelClock, u.Kernel}, {tacho.ReadClock, u.Read}, {tacho.VirtualClock, u.virtual}} {
		switch {
		case c.requests == 0:
		case out.Name == "":
			out.Name = c.clock.String()
		default:
			out.Name = "mixed"
		}
	}
	return out
}

// fartherFromZero returns the number farther from 0. Of two opposite numbers it returns the positive
// one, so that order does not matter.
func fartherFromZero[T int | time.Duration](a, b T) T {
	x, y := max(a, -a), max(b, -b)
	if y > x || y == x && b > a {
		return b
	}
	return a
}
