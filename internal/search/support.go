package search

import (
	"math"
	"slices"
	"time"
)

// gap returns the time between two clusters of misses near a load, by the probes in
// which a few clusters decide; 0 if there are none. A quiet probe proves nothing for as
// long: the next pause of the server may be due.
func (s *Search) gap(load float64) time.Duration {
	took, clusters := time.Duration(0), 0.0
	for _, r := range s.Results {
		near := r.Load >= load/gapReach && r.Load <= load*gapReachAbove
		if n := s.few(r); n > 0 && near && !r.Verdict.Missed() {
			took, clusters = took+r.Took, clusters+max(n, 1)
		}
	}
	return time.Duration(float64(took) / max(clusters, epsilon))
}

// few returns the number of clusters of misses that decide a probe; 0 if there are enough
// or none.
func (s *Search) few(r Result) (n float64) {
	for i, g := range s.Goals {
		if r.usable() && !r.Effort.Scout && r.Goals[i].fewClusters(g) {
			n = max(n, r.Goals[i].Misses)
		}
	}
	return n
}

// pValues returns two p-values of all probes between two loads together, without scouts:
// of the hypothesis that these loads just keep all goals, and of the hypothesis that
// they just miss one. The first is corrected for the number of goals (Bonferroni).
func (s *Search) pValues(low, high float64) (holds, misses float64) {
	holds = 1
	for i, g := range s.Goals {
		var all Evidence
		for _, r := range s.Results {
			if !r.usable() || r.Effort.Scout || r.Load < low || r.Load > high {
				continue
			}
			if s.overloaded(r) {
				holds = 0
			}
			all = all.plus(g, r.Goals[i])
		}
		goalHolds, goalMisses := all.pValues(g)
		holds, misses = min(holds, goalHolds*float64(len(s.Goals))), max(misses, goalMisses)
	}
	return holds, misses
}

// holdsBelow returns the highest load up to low that the probes prove to hold at a
// significance level; 0 is none. If a load holds, all loads below it hold, so the
// probes between the load and low count together. A load does not hold if a probe of
// it, or of a lower load, missed.
func (s *Search) holdsBelow(low, alpha float64) (load float64) {
	for _, r := range s.Results {
		if !r.usable() || r.Effort.Scout || r.Load > low || r.Load <= load || s.missedBelow(r.Load) || !s.observedLong(r.Load, low) {
			continue
		}
		_, alone := s.pValues(r.Load, r.Load)
		_, all := s.pValues(r.Load, low)
		if min(alone, all) <= alpha {
			load = r.Load
		}
	}
	return load
}

// missesAbove returns the lowest load from high on that the probes prove to miss at a
// significance level; 0 is none.
func (s *Search) missesAbove(high, alpha float64) (load float64) {
	for _, r := range s.Results {
		if !r.usable() || r.Effort.Scout || r.Load < high || high == 0 || load > 0 && r.Load >= load {
			continue
		}
		alone, _ := s.pValues(r.Load, r.Load)
		if all, _ := s.pValues(high, r.Load); min(alone, all) <= alpha {
			load = r.Load
		}
	}
	return load
}

// missedBelow reports whether a probe of a load or of a lower one missed.
func (s *Search) missedBelow(load float64) bool {
	return slices.ContainsFunc(s.Results, func(r Result) bool {
		return r.usable() && !r.Effort.Scout && r.Load <= load && r.Verdict.Missed() && s.significant(r)
	})
}

// significant reports whether random variation hardly explains the misses of a probe.
func (s *Search) significant(r Result) bool {
	if s.overloaded(r) {
		return true
	}
	for i, g := range s.Goals {
		if holds, _ := r.Goals[i].pValues(g); holds <= fullAlpha {
			return true
		}
	}
	return false
}

// overloaded reports whether a probe was overloaded, and not by random variation: the server did not keep up with this
// and higher loads for overloadDoubt times as long.
func (s *Search) overloaded(r Result) bool {
	kept := time.Duration(0)
	for _, o := range s.Results {
		if o.usable() && !o.Effort.Scout && o.Load >= r.Load && !o.Verdict.Missed() {
			kept += o.Took
		}
	}
	return r.Verdict == Overrun && kept < overloadDoubt*r.Took
}

// observedLong reports whether the loads between two were observed for long enough to
// see pauses of the server, and a burst that its quota allows.
func (s *Search) observedLong(low, high float64) bool {
	longest := time.Duration(0)
	for _, r := range s.Results {
		if r.usable() && !r.Effort.Scout && r.Load >= low && r.Load <= high {
			longest = max(longest, r.Took)
		}
	}
	need := s.observeTime(low)
	if s.quiet(low, high) {
		need = max(need, minClusters*s.gap(low))
	}
	return s.observed(low, high) >= need && longest >= s.burstTime(low)
}

// observed returns the time of the probes between two loads.
func (s *Search) observed(low, high float64) (sum time.Duration) {
	for _, r := range s.Results {
		if r.usable() && !r.Effort.Scout && r.Load >= low && r.Load <= high {
			sum += r.Took
		}
	}
	return sum
}

// quiet reports whether the probes between two loads had hardly any misses.
func (s *Search) quiet(low, high float64) bool {
	return !slices.ContainsFunc(s.Results, func(r Result) bool {
		return r.usable() && !r.Effort.Scout && r.Load >= low && r.Load <= high && s.worstRatio(r) > relevantShare
	})
}

// observeTime returns how long a load, or loads between it and the limit, are observed
// before it can be the answer: pauses may be minutes apart.
func (s *Search) observeTime(load float64) time.Duration {
	return s.atMost(min(s.budget()/observeDivisor, maxObserveTime), observeRequests, load)
}

// atMost returns a time, or the time of a number of requests if it is shorter.
func (s *Search) atMost(most time.Duration, requests, load float64) time.Duration {
	if s.Kind != Rate {
		load = max(s.servedRate(), 1)
	}
	return min(most, time.Duration(requests/load*float64(time.Second)))
}

// burstTime returns how long a load must be offered until the burst that a quota allows
// has run out; 0 without a quota, or if the load is below it. The rate that a server
// accepts in the long run is known from probes in which it began to refuse requests.
func (s *Search) burstTime(load float64) (long time.Duration) {
	for _, r := range s.Results {
		if r.usable() && r.burst > 0 && load > burstMargin*r.accepted {
			long = max(long, time.Duration(burstFactor*r.burst/(load-r.accepted)*float64(time.Second)))
		}
	}
	return long
}

// acceptedRate returns the rate that the server accepts in the long run, by the longest
// probe in which it began to refuse requests; infinity if there is none.
func (s *Search) acceptedRate() float64 {
	rate, longest := math.Inf(1), time.Duration(0)
	for _, r := range s.Results {
		if r.usable() && r.burst > 0 && r.Took > longest {
			rate, longest = r.accepted, r.Took
		}
	}
	return rate
}

// interval returns the ends of the 95 % confidence interval of the limit. It is 0, 0 if
// the probes do not prove both ends. Both ends are moved outwards, because each probe
// begins with an empty server.
func (s *Search) interval(low, high float64) (from, to float64) {
	from, to = s.holdsBelow(low, intervalAlpha), s.missesAbove(high, intervalAlpha)
	if from == 0 || to == 0 {
		return 0, 0
	}
	return from / emptyServerMargin, to * emptyServerMargin
}

// rhythm returns the probe in which the fewest clusters of misses decide, near the
// bracket, and the goal they miss; ok is false if there is none.
func (s *Search) rhythm(low, high float64) (found Result, goal int, ok bool) {
	longest := 0.0
	for _, r := range s.Results {
		for i, g := range s.Goals {
			e := r.Goals[i]
			if r.usable() && !r.Effort.Scout && r.Load >= low/wideBracket && (high == 0 || r.Load <= high*wideBracket) && e.fewClusters(g) {
				if seconds := e.Count / e.EffectiveSize / max(r.Served, epsilon); seconds > longest {
					found, goal, longest, ok = r, i, seconds, true
				}
			}
		}
	}
	return found, goal, ok
}
