package search

import (
	"math"
	"slices"
	"time"
)

// A Search finds the highest load that keeps the goals. Run the probe that Next returns
// under its Watch, and Add the Watch when the last request finished.
//
// The search names only measured loads. Scouts go up until a goal is missed.
// Probes between the highest load that holds and the lowest load that misses follow,
// until both are within Within of each other and each has a full probe that shows it.
// The remaining time goes into these two loads, until random variation hardly explains
// either.
type Search struct {
	Kind    Kind
	Goals   []Goal
	From    float64       // first load; 0 begins with one request at a time
	To      float64       // highest load to try; 0 is no limit
	Within  float64       // ratio of the lowest load that misses to the highest that holds, less 1
	Budget  time.Duration // most time for all probes together; 0 is chosen by the load
	Size    int           // most requests of a probe; 0 is as many as the goals need
	Results []Result

	meanLengths arrival      // mean lengths of the requests of the first probe
	process     []arrival    // a long sample of the arrival process, at one request per second
	queues      []queueFit   // one for each goal
	curves      []*missCurve // one for each goal; nil if the goal has none
}

// New returns a search with default bounds.
func New(kind Kind, goals []Goal) *Search {
	return &Search{Kind: kind, Goals: goals, Within: defaultWithin}
}

// Watch returns the judge of a probe.
func (s *Search) Watch(p Probe) *Watch {
	return &Watch{Probe: p, goals: s.Goals, nextCheck: p.Effort.MinRequests}
}

// Add takes the outcome of a probe. void is the reason if the probe is invalid.
func (s *Search) Add(w *Watch, void string) Result {
	r := w.result()
	s.normalizeLengths(&r)
	if void != "" {
		r.Verdict, r.Why, r.Enough = Void, void, false
	}
	s.Results = append(s.Results, r)
	s.refit()
	return r
}

// normalizeLengths divides the lengths of requests by the mean lengths of the first probe.
func (s *Search) normalizeLengths(r *Result) {
	mean := &s.meanLengths
	if *mean == (arrival{}) {
		n := float64(max(len(r.schedule), 1))
		for _, a := range r.schedule {
			mean.prompt, mean.output = mean.prompt+a.prompt/n, mean.output+a.output/n
		}
	}
	for i := range r.schedule {
		a := &r.schedule[i]
		a.prompt, a.output = lengthRatio(a.prompt, mean.prompt), lengthRatio(a.output, mean.output)
	}
}

// lengthRatio returns a length in units of the mean; 1 if lengths are unknown.
func lengthRatio(length, mean float64) float64 {
	if mean == 0 {
		return 1
	}
	return max(length/mean, minLengthRatio)
}

// Next returns the next probe; false ends the search.
func (s *Search) Next() (Probe, bool) {
	left := s.timeLeft()
	if len(s.Results) >= maxProbes || s.voids() >= maxVoidProbes || left <= 0 {
		return Probe{}, false
	}
	p, ok := s.retry()
	if !ok {
		p, ok = s.choose()
	}
	p.Number, p.Kind, p.Expected = len(s.Results), s.Kind, s.expectedLatency(p.Load)
	minTime := minLatencies * p.Expected
	if p.Effort.Scout {
		minTime = scoutMinLatencies * p.Expected
	}
	p.Effort.MinTime = max(p.Effort.MinTime, minTime)
	if s.Budget > 0 {
		p.Effort.MaxTime = left
	}
	return p, ok
}

// Left returns how long the search still takes at most.
func (s *Search) Left() time.Duration { return max(s.timeLeft(), 0) }

// timeLeft returns the remaining time of the search.
func (s *Search) timeLeft() time.Duration {
	spent := time.Duration(0)
	for _, r := range s.Results {
		spent += r.Took
	}
	if s.Budget > 0 {
		return s.Budget - spent
	}
	rate := s.servedRate()
	if rate == 0 {
		return minBudget
	}
	budget := max(time.Duration(budgetRequests/rate*float64(time.Second)), minBudget)
	if l := (Limit{}); spent >= budget {
		if s.fill(&l); !l.Decided {
			budget *= undecidedBudgetFactor
		}
	}
	return budget - spent
}

// servedRate returns the requests per second served at the load that holds, or at the
// lowest load tried if none holds; 0 if nothing is known.
func (s *Search) servedRate() float64 {
	low, _ := s.bracket()
	rate := 0.0
	for _, r := range s.Results {
		if r.usable() && (r.Load == low || low == 0 && (rate == 0 || r.Served < rate)) {
			rate = r.Served
		}
	}
	return rate
}

// expectedLatency returns the p95 latency of the nearest held probe; 0 if there was
// none. Other probes do not count, because latencies of an overloaded server grow with
// the duration of the probe.
func (s *Search) expectedLatency(load float64) (latency time.Duration) {
	nearest := math.Inf(1)
	for _, r := range s.Results {
		distance := math.Abs(math.Log(load / r.Load))
		if r.Alone && s.Kind == Rate {
			distance = math.Abs(math.Log(load / r.Served))
		}
		if r.Verdict != Void && !r.Verdict.Missed() && distance < nearest {
			latency, nearest = r.LatencyP95, distance
		}
	}
	return latency
}

// unloadedLatency estimates the latency of a request on an idle server: the lowest p95
// of all probes.
func (s *Search) unloadedLatency() (lowest time.Duration) {
	for _, r := range s.Results {
		if r.Verdict != Void && (lowest == 0 || r.LatencyP95 < lowest) {
			lowest = r.LatencyP95
		}
	}
	return lowest
}

// voids counts the void probes.
func (s *Search) voids() (n int) {
	for _, r := range s.Results {
		n += int(indicator(r.Verdict == Void))
	}
	return n
}

// cannotSend reports whether the client could not send a load, not even in a retry.
func (s *Search) cannotSend(r Result) bool {
	return r.Verdict == Void && !slices.ContainsFunc(s.Results, func(o Result) bool { return o.Load >= r.Load && o.Verdict != Void })
}

// worstRatio returns the highest miss ratio of all goals in a probe.
func (s *Search) worstRatio(r Result) (worst float64) {
	for i, e := range r.Goals {
		worst = max(worst, e.missRatio(s.Goals[i]))
	}
	return worst
}

// passed reports whether a probe by itself had enough requests and kept all goals.
func (s *Search) passed(r Result) bool {
	return r.usable() && r.Enough && !r.Verdict.Missed() && s.worstRatio(r) <= 1
}

// missed reports whether a probe by itself missed a goal.
func (s *Search) missed(r Result) bool {
	return r.usable() && (r.Verdict.Missed() || s.worstRatio(r) > 1)
}
