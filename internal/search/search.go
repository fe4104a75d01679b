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
// until random variation hardly explains either of two loads that are near each other.
type Search struct {
	Kind    Kind
	Goals   []Goal
	From    float64       // first load; 0 begins with one request at a time
	To      float64       // highest load to try; 0 is no limit
	Within  float64       // ratio of the lowest load that misses to the highest that holds, less 1
	Budget  time.Duration // most time for all probes together; 0 is chosen by the load, for servers in virtual time
	Size    int           // most requests of a probe; 0 is as many as the goals need
	Results []Result
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
	if void != "" {
		r.Verdict, r.Why, r.Enough = Void, void, false
	}
	s.Results = append(s.Results, r)
	return r
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
	p.Effort.MinTime, p.Effort.MaxTime = max(p.Effort.MinTime, minTime), left
	if p.Effort.Full && !p.Alone {
		s.fit(&p, left)
	}
	return p, ok
}

// fit sets the times of a full probe: long enough for the rhythm of the server, but a
// part of the remaining time is for the other end of the bracket.
func (s *Search) fit(p *Probe, left time.Duration) {
	part, e := left/fullBudgetDivisor, &p.Effort
	e.MinTime = max(e.MinTime, min(s.burstTime(p.Load), left/2))
	if low, _ := s.bracket(); s.fullProbes(p.Load) > 0 && p.Load <= low {
		e.MinTime = max(e.MinTime, min(s.observeTime(p.Load)-s.observed(p.Load, low), part))
	}
	e.QuietTime = min(minClusters*s.gap(p.Load), part)
	enough := time.Duration(float64(e.MaxRequests) / enoughShare / max(p.rate(), epsilon) * float64(time.Second))
	e.MaxTime = min(left, max(part, e.MinTime, enough))
}

// Left returns how long the search still takes at most.
func (s *Search) Left() time.Duration { return max(s.timeLeft(), 0) }

// timeLeft returns the remaining time of the search.
func (s *Search) timeLeft() time.Duration {
	left := s.budget()
	for _, r := range s.Results {
		left -= r.Took
	}
	return left
}

// budget returns the most time for all probes together.
func (s *Search) budget() time.Duration {
	if s.Budget > 0 {
		return s.Budget
	}
	rate := s.servedRate()
	if rate == 0 {
		return unknownBudget
	}
	ofRequests := func(n float64) time.Duration { return time.Duration(n / rate * float64(time.Second)) }
	return max(ofRequests(budgetRequests), min(budgetTime, ofRequests(maxBudgetRequests)), minBudget)
}

// servedRate returns the requests per second served at the load that holds, or at the
// lowest load tried if none holds, or one at a time; 0 if nothing is known.
func (s *Search) servedRate() float64 {
	low, _ := s.bracket()
	rate := 0.0
	for _, r := range s.Results {
		if r.usable() && (r.Load == low || low == 0 && (rate == 0 || r.Served < rate)) {
			rate = r.Served
		}
	}
	if rate == 0 && len(s.Results) > 0 && s.Results[0].Alone {
		return s.Results[0].Served
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

// missed reports whether a probe by itself missed a goal.
func (s *Search) missed(r Result) bool {
	return r.usable() && (r.Verdict.Missed() || s.worstRatio(r) > 1)
}
