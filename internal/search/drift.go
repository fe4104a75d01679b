package search

import "math"

// A change is a contradiction between two probes, in the order of time.
type change struct {
	before, after Result
	how           string
}

// drift returns the first two contradictory probes, because the server
// changed in between: one held a load and the other missed a load that was not higher,
// or requests took longer at a load that was not higher. A scout that held proves
// nothing, because it does not fill a server. Its latencies count.
func (s *Search) drift() (found change, changed bool) {
	for i, a := range s.Results {
		for _, b := range s.Results[i+1:] {
			long := !a.Effort.Scout
			switch {
			case !a.usable() || !b.usable() || b.Effort.Scout:
			case long && b.Load <= a.Load && (s.contradict(b, a) || tookLonger(a, b)):
				return change{a, b, "slower"}, true
			case a.Load <= b.Load && (long && s.contradict(a, b) || tookLonger(b, a)):
				return change{a, b, "faster"}, true
			}
		}
	}
	return change{}, false
}

// contradict reports whether random variation hardly explains that one probe missed and
// another probe, of a load that was not lower, held.
func (s *Search) contradict(missed, held Result) bool {
	single := func(r Result) (holds, misses float64) {
		one := Search{Goals: s.Goals, Results: []Result{r}}
		return one.pValues(r.Load, r.Load)
	}
	holds, _ := single(missed)
	_, misses := single(held)
	return held.Verdict != Overrun && max(holds, misses) <= contradictionAlpha
}

// tookLonger reports whether latencies were significantly higher in b than in a.
// Latencies of an overloaded server do not count, because they grow with the duration
// of the probe.
func tookLonger(a, b Result) bool {
	if a.Verdict.Missed() || b.Verdict.Missed() || a.steady < minFullRequests/shortProbeDivisor {
		return false
	}
	rise := b.logLatency - a.logLatency
	return rise > driftLogLatency && rise > driftSigma*math.Hypot(a.logLatencyError, b.logLatencyError)
}
