package search

import (
	"math"
	"time"
)

// A Kind is the load that find raises until the SLO is missed.
type Kind string

// The kinds of load.
const (
	Rate        Kind = "rate"        // requests per second
	Concurrency Kind = "concurrency" // requests in flight
	Users       Kind = "users"       // concurrent sessions, with their think time
)

// Kinds lists all kinds of load.
var Kinds = []Kind{Rate, Concurrency, Users}

// A Probe is a load to measure.
type Probe struct {
	Number   int
	Kind     Kind
	Load     float64
	Alone    bool          // one request at a time, for any kind: the lowest load
	Expected time.Duration // expected p95 latency of a request; 0 if unknown
	Effort   Effort
}

// Open reports whether the probe is an open loop: requests do not wait for answers.
func (p Probe) Open() bool { return p.Kind == Rate && !p.Alone }

// An Effort bounds the cost of a probe and sets its certainty.
type Effort struct {
	MinRequests int           // before the first check
	MaxRequests int           // in the steady part
	Alpha       float64       // significance level of the verdict, on either side
	Scout       bool          // values far from the limits suffice for a verdict
	Full        bool          // MaxRequests is as many requests as the goals need
	MinTime     time.Duration // before the first check
	QuietTime   time.Duration // least time if hardly a request misses, because other probes had rare clusters of misses
	MaxTime     time.Duration // the probe ends then; 0 is no limit
}

// Ceiling returns the maximum number of requests of a probe: the warm-up, the steady
// part, and the requests in flight after the verdict.
func (p Probe) Ceiling() int {
	inFlight, inMinTime := 2*p.Load, p.Load*p.Effort.MinTime.Seconds()
	switch {
	case p.Open():
		inFlight *= p.Expected.Seconds()
	case p.Expected > 0:
		inMinTime /= p.Expected.Seconds()
	default:
		inMinTime = 0
	}
	most := max(float64(p.Effort.MaxRequests)/enoughShare, warmupCeilingFactor*inMinTime)
	if rate := p.rate(); p.Effort.Full { // it runs longer while a few clusters of misses decide
		most = max(most, rate*p.Effort.MaxTime.Seconds())
	}
	return int(most+inFlight) + 2*p.Effort.MinRequests
}

// rate returns the expected requests per second; 0 if unknown.
func (p Probe) rate() float64 {
	switch {
	case p.Open():
		return p.Load
	case p.Expected > 0:
		return p.Load / p.Expected.Seconds()
	}
	return 0
}

// A Verdict is the decision of a probe about its load.
type Verdict int

// The verdicts.
const (
	Undecided Verdict = iota // the load is too close to the limit
	Holds
	Misses
	Overrun // requests arrive faster than the server serves them
	Void    // the probe is invalid
)

var verdictNames = [...]string{"undecided", "holds", "misses", "overloaded", "excluded"}

func (v Verdict) String() string { return verdictNames[v] }

// Missed reports whether the load is too high.
func (v Verdict) Missed() bool { return v == Misses || v == Overrun }

// A Result is the outcome of a probe.
type Result struct {
	Probe
	Verdict    Verdict
	Why        string     // reason of a void or undecided verdict
	Goals      []Evidence // one for each goal
	Requests   int
	Enough     bool          // the steady part has as many requests as the goals need, or the verdict is significant
	Served     float64       // requests per second in the steady part, or until the last answer if higher
	LatencyP95 time.Duration // of the durations of requests
	Took       time.Duration // duration of the probe

	logLatency, logLatencyError float64 // mean logarithm of the durations of requests, and its standard error
	steady                      int     // requests of the steady part
	burst, accepted             float64 // requests beyond the accepted rate until the server refused some, and that rate; 0 is none
}

// usable reports whether a result counts for the bracket.
func (r Result) usable() bool { return r.Verdict != Void && !r.Alone }

// aloneProbe returns the first probe, which sends one request at a time.
func aloneProbe() Probe {
	return Probe{Load: 1, Alone: true, Effort: Effort{
		MinRequests: aloneRequests, MaxRequests: aloneMaxFactor * aloneRequests, Alpha: scoutAlpha, Scout: true,
	}}
}

// scout returns a probe just long enough to recognize a load far from the limit.
func scout(load float64) Probe {
	return Probe{Load: load, Effort: Effort{
		MinRequests: scoutRequests, MaxRequests: scoutMaxFactor * scoutRequests, Alpha: scoutAlpha, Scout: true, MinTime: scoutTime,
	}}
}

// full returns a probe with as many requests as the goals need.
func (s *Search) full(load float64) Probe {
	return Probe{Load: load, Effort: Effort{
		MinRequests: fullMinFactor * scoutRequests, MaxRequests: s.fullRequests(), Alpha: fullAlpha, Full: true,
		MinTime: s.atMost(fullTime, fullTimeRequests, load),
	}}
}

// fullAlone returns a full probe of one request at a time.
func (s *Search) fullAlone() Probe {
	p := s.full(1)
	p.Alone = true
	return p
}

// short returns a probe between a scout and a full one, to narrow a wide bracket.
func (s *Search) short(load float64) Probe {
	p := s.full(load)
	p.Effort.MaxRequests = max(p.Effort.MaxRequests/shortProbeDivisor, scoutMaxFactor*scoutRequests)
	p.Effort.MinTime, p.Effort.Full = scoutTime, false
	return p
}

// fullRequests returns the number of requests of a full probe in its steady part.
func (s *Search) fullRequests() int {
	n := minFullRequests
	for _, g := range s.Goals {
		n = max(n, g.fullRequests())
	}
	if s.Size > 0 {
		n = min(n, s.Size)
	}
	return n
}

// fullRequests returns the number of requests needed to judge the goal.
func (g Goal) fullRequests() int {
	switch {
	case g.Metric == nil && g.Good == nil:
		return min(int(math.Ceil(failureTailRequests/g.Share)), maxFailureRequests)
	case g.Mean:
		return meanRequests
	}
	return int(math.Round(fullTailRequests / g.Share))
}
