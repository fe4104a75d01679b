package metric

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"tacho"
	"tacho/stat"
)

// An Accumulator is a Sink that sums up. Its zero value is empty and ready.
//
// A summary is a function of the set of records, never of their order, so
// accumulators merge and a cluster is summed the way one machine is. Of a record
// it keeps the marks, some 80 bytes, and of a long run those of a part of the records;
// what a record has many of, as gaps between tokens, goes into digests, whose memory has
// a bound. Up to that bound every quantile is exact, and the summary says where it is not.
type Accumulator struct {
	Goodput []SLO   // what a good request keeps; set it before the first Add
	Stall   float64 // gaps longer than so many milliseconds are stalls; 0 is DefaultStallMillis; set it likewise
	Limit   int     // observations of one metric that are kept one by one; 0 is stat.ExactLimit

	marks    []marks
	most     int // of them that are kept; 0 is marksLimit, as it is but in tests
	thinned  thinned
	dues     span // of requests that were sent
	sents    span
	inFlight time.Duration // sum over all requests that were sent, with the time to connect
	whole    part          // of All
	apart    bool          // gaps by token are not those between events: until then they are kept once
	bounds   bounds
	series   series // of All
	parts    parts
	failures map[failureKey]FailureGroup
	finishes map[string]int
	sessions sessions
	clock    clockUse
	network  NetworkUse
	arrivals arrivals
	cache    CacheUse
	buffered Buffering
	begun    int // sessions
	good     int
	stalled  int
	audio    stat.Digest // seconds of sound, of successful requests
	metrics  []*Metric   // All, with stalls as asked for
	values   values      // of the record that is being added, of Classic
	columns  []column
	witness  witness
	tally    tally
}

var _ tacho.Sink = (*Accumulator)(nil)

// marks are the moments of one request.
type marks struct {
	due, slot, sent, first, last, end time.Duration
	turn, input, output               int32
	ok                                bool
	session                           uint64
	connect                           time.Duration      // how long that took
	server                            *tacho.ServerTimes // nil where it tells none
}

func marksOf(r *tacho.Record) marks {
	m := marks{session: r.Session, due: r.Due, slot: r.Slot, sent: r.Sent, first: r.First(), last: r.Last(), end: r.End, turn: int32(r.Turn), input: small(InputTokens(r)), output: small(r.Output), ok: r.OK()}
	if !r.Reused && r.Start != tacho.Never && r.Conn != tacho.Never { // before it has one that is open, only the client is late
		m.connect = r.Conn - r.Start
	}
	if r.Server != nil {
		times := *r.Server
		m.server = &times
	}
	return m
}

// small is a number of tokens of one request, which a server may make up.
func small(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

// streamed says whether a request has the marks of a streamed success.
func (m *marks) streamed() bool { return m.ok && m.sent != tacho.Never && m.first != tacho.Never }

// Add implements tacho.Sink.
func (a *Accumulator) Add(r *tacho.Record) error {
	if r.Turn == 0 {
		a.begun++
	}
	a.mark(marksOf(r))
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
	if r.OK() {
		if a.finishes == nil {
			a.finishes = map[string]int{}
		}
		a.finishes[r.Finish]++
		if r.AudioS > 0 {
			a.audio.Add(r.AudioS)
		}
		if isGood(r, a.Goodput) {
			a.good++
		}
	}
	return nil
}

// measure works out the values of r.
func (a *Accumulator) measure(r *tacho.Record) {
	if a.metrics == nil {
		a.metrics = WithStalls(a.Stall)
	}
	skip := -1
	if !a.apart && singleTokens(r) {
		skip = tokenGapAt
	} else if !a.apart {
		a.tellGapsApart()
	}
	if a.values == nil {
		a.values = make(values, classicCount)
	}
	a.values.of(r, Classic, &a.witness)
	a.note(r, skip)
}

// singleTokens says whether every event of r but the first has one token, so that gaps
// by token are those between events.
func singleTokens(r *tacho.Record) bool {
	for i := 1; i < len(r.Events); i++ {
		if r.Events[i].Tokens != 1 && tokensIn(r, i) != 1 {
			return false
		}
	}
	return true
}

// tellGapsApart begins to keep the gaps by token. Where every event has one token
// they are the gaps between events, of which there are more than of all else.
func (a *Accumulator) tellGapsApart() {
	a.apart = true
	if len(a.series) > 0 {
		a.whole.digests[tokenGapAt].Merge(&a.whole.digests[indexITL])
		a.series[tokenGapAt].Merge(&a.series[indexITL])
	}
}

// mergeGaps takes in the gaps by token of b, whose others are merged later.
func (a *Accumulator) mergeGaps(b *Accumulator) {
	if !a.apart && !b.apart || len(b.series) == 0 {
		return
	}
	a.whole.readyFor(&b.whole)
	if !a.apart {
		a.tellGapsApart()
	}
	if !b.apart { // what is in their place is empty
		a.whole.digests[tokenGapAt].Merge(&b.whole.digests[indexITL])
		a.series.ready(len(b.series))
		a.series[tokenGapAt].Merge(&b.series[indexITL])
	}
}

// dists are all distributions.
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

// fixedNumber says whether a rate sent as many requests as were asked for.
func fixedNumber(s *Summary) bool {
	c := &s.Config
	return c.RequestRate != 0 && !math.IsInf(c.RequestRate, 1) && !s.LimitBound && !c.Interrupted
}

// Close implements tacho.Sink.
func (a *Accumulator) Close() error { return nil }

// Begun is how many sessions have a record of their first turn.
func (a *Accumulator) Begun() int { return a.begun }

// Merge adds what b has seen; b does not change.
func (a *Accumulator) Merge(b *Accumulator) {
	a.begun += b.begun
	a.settle()
	b.settle()
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
	a.good += b.good
	a.stalled += b.stalled
	a.audio.Merge(&b.audio)
}

// Summary sums up what was added so far.
func (a *Accumulator) Summary(c Config) Summary {
	a.settle()
	s := Summary{Config: c, Counts: a.whole.Counts, Tokens: a.whole.tokens}
	s.Failures = slices.SortedFunc(maps.Values(a.failures), func(a, b FailureGroup) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(string(a.Cause), string(b.Cause)), strings.Compare(a.Phase, b.Phase), a.Status-b.Status)
	})
	s.Finishes = finishes(a.finishes)
	s.Endpoints = a.parts.endpoints(c.Percentiles)
	s.Groups = a.parts.groups(c.Percentiles)
	s.Sessions = a.sessions.summary()
	s.Clock, s.Network = a.clock.summary(), a.network
	s.Peaks = a.peaks()
	s.LimitBound = c.MaxConcurrency > 0 && a.peakOverlap(&a.thinned.slots, slot, end) >= c.MaxConcurrency
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
	a.bounds.summarize(&s)
	s.Stalled = a.stalled
	s.spent, s.slowest = spending(a.marks)
	s.spent.merge(&a.thinned.spent)
	s.OneIn = int(a.thinned.every)
	s.judge()
	return s
}

// Probe sums up records that are probes; nil where there is none.
func (a *Accumulator) Probe() *Probe {
	if len(a.marks) == 0 {
		return nil
	}
	s := a.Summary(Config{})
	e2el := s.Classic(E2EL)
	return &Probe{s.Completed, s.Failed, e2el.Median, e2el.Percentile(99), e2el.Max}
}

// failureKey is what failures are grouped by.
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
	if f.Cause == tacho.Timeout { // how far it came is the cause of it
		k.phase = f.Phase
	}
	a.mergeFailure(k, FailureGroup{f.Cause, k.phase, f.Status, 1, max(r.End, 0).Seconds(), f.Message})
}

func (a *Accumulator) mergeFailure(k failureKey, g FailureGroup) {
	if a.failures == nil {
		a.failures = map[failureKey]FailureGroup{}
	}
	before, seen := a.failures[k]
	// Of equal times the smaller message, so that order does not matter.
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

// isGood says whether r keeps every SLO.
func isGood(r *tacho.Record, slos []SLO) bool {
	return !slices.ContainsFunc(slos, func(slo SLO) bool { return !slo.keptBy(r) })
}

// A FinishCount is how many successful requests ended for one reason.
type FinishCount struct {
	Reason   string `json:"reason"` // the server's word; empty where it gave none
	Requests int    `json:"requests"`
}

// clockUse adds up what stamped the arrivals.
type clockUse struct {
	ClockUse
	virtual int // requests that were computed
	worst   time.Duration
}

// A step of the wall clock is told from its slow steering by both limits.
const (
	clockStepMin   = time.Millisecond // below it no latency is visibly wrong
	clockStepShare = 0.001            // of the request's time: twice what clock steering may do
)

func (u *clockUse) add(r *tacho.Record) {
	switch {
	case r.Head == tacho.Never: // nothing was received, so nothing was stamped
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

// fartherFromZero prefers the positive of two opposite numbers, so that order
// does not matter.
func fartherFromZero[T int | time.Duration](a, b T) T {
	x, y := max(a, -a), max(b, -b)
	if y > x || y == x && b > a {
		return b
	}
	return a
}
