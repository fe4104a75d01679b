package search

import (
	"math"
	"slices"
	"strconv"
)

// retry repeats a void probe once, because its cause may be gone.
func (s *Search) retry() (Probe, bool) {
	n := len(s.Results)
	if n == 0 || s.Results[n-1].Verdict != Void || n > 1 && s.Results[n-2].Verdict == Void {
		return Probe{}, false
	}
	return s.Results[n-1].Probe, true
}

// choose returns the next probe by the results so far; false ends the search.
func (s *Search) choose() (Probe, bool) {
	if len(s.Results) == s.voids() {
		return s.first(), len(s.Results) <= 1
	}
	low, high := s.bracket()
	held, missed := s.alone()
	if _, changed := s.drift(); changed || missed {
		return Probe{}, false
	}
	switch {
	case high == 0 && low == 0 && !held && s.Results[0].Alone: // a few requests alone do not prove a miss
		return s.fullAlone(), true
	case high == 0 && low == 0:
		return s.up(s.aloneLoad())
	case high == 0:
		return s.up(low)
	case low == 0:
		return s.down(high)
	}
	return s.refine(low, high)
}

// first returns the first probe.
func (s *Search) first() Probe {
	if s.From > 0 {
		return scout(s.From)
	}
	return aloneProbe()
}

// aloneLoad returns the load of about one request at a time, by the first probe.
func (s *Search) aloneLoad() float64 {
	for _, r := range s.Results {
		if r.Alone && r.Verdict != Void && s.Kind == Rate {
			return r.Served
		}
	}
	return 1
}

// alone reports whether one request at a time held, and whether it missed in a probe
// with enough requests.
func (s *Search) alone() (held, missed bool) {
	for _, r := range s.Results {
		if r.Alone && r.Verdict != Void {
			held = !r.Verdict.Missed() && s.worstRatio(r) <= 1 || held && !r.Enough
			missed = r.Enough && (r.Verdict.Missed() || s.worstRatio(r) > 1)
		}
	}
	return held, missed
}

// hasFullAlone reports whether one request at a time had a probe with enough requests.
func (s *Search) hasFullAlone() bool {
	return slices.ContainsFunc(s.Results, func(r Result) bool { return r.Alone && r.Verdict != Void && r.Enough })
}

// up returns a scout above a held load.
func (s *Search) up(from float64) (Probe, bool) {
	step := float64(scoutStep)
	if !s.onlyScouted(from) {
		step = nearStep
	}
	load := s.round(from * step)
	if load <= from {
		load = from + 1
	}
	if s.To > 0 && load >= s.To {
		load = s.To
		if from >= s.To {
			return s.full(from), !s.hasFull(from)
		}
	}
	return scout(load), true
}

// down returns a short probe of a lower load than one that misses, if none holds. One
// request at a time is the lowest load: if it misses, no load holds.
func (s *Search) down(high float64) (Probe, bool) {
	if s.noLoadHolds(high) {
		return Probe{}, false
	}
	if high <= s.aloneLoad() && !s.hasFullAlone() {
		return s.fullAlone(), true
	}
	return s.short(s.round(high / scoutStep)), true
}

// noLoadHolds reports whether no load holds, if high is the lowest load tried and it
// misses. Either high is far below one request at a time, or the share of misses hardly
// fell between the load above and high.
func (s *Search) noLoadHolds(high float64) bool {
	if s.Kind != Rate {
		return high <= 1
	}
	alone := s.aloneLoad()
	if high > alone || !s.hasFullAlone() {
		return false
	}
	at, above := 0.0, math.Inf(1)
	for _, r := range s.Results {
		switch {
		case !r.usable():
		case r.Load == high:
			at = max(at, s.worstRatio(r))
		case r.Load >= scoutStepTolerance*scoutStep*high && s.missed(r) && r.Verdict != Overrun:
			above = min(above, s.worstRatio(r))
		}
	}
	return high < alone/lowestLoadFactor || at > persistentMissShare*above
}

// refine narrows the bracket, and then measures its two ends for longer.
func (s *Search) refine(low, high float64) (Probe, bool) {
	if p, ok, found := s.checkEnds(low, high); found {
		return p, ok
	}
	load, near := s.propose(low, high)
	if load = s.round(load); low < load && load < high {
		if near {
			return s.full(load), true
		}
		return s.short(load), true
	}
	return s.confirm(low, high)
}

// checkEnds returns a probe of an end of the bracket measured only by a scout, or whose
// upper end the client cannot send. found is false if the bracket needs no such probe.
func (s *Search) checkEnds(low, high float64) (p Probe, ok, found bool) {
	switch {
	case s.missesAbove(low) >= recheckMisses && s.onlyScouted(low):
		return s.short(low), true, true
	case s.whyNotSent(low) != "" && high/low <= clientLimitRatio:
		return s.full(low), !s.hasFull(low), true
	case high/low <= wideBracket && s.onlyScouted(high): // a scout may take warm-up for overload
		return s.short(high), true, true
	}
	return Probe{}, false, false
}

// confirm measures the two ends of a narrow bracket: until each has a probe of its own
// that shows it, until one was measured again after the other, and then the end with
// the higher p-value.
func (s *Search) confirm(low, high float64) (Probe, bool) {
	switch {
	case !s.shown(low, s.passed) && s.fullProbes(low) < maxFullProbes:
		return s.full(low), true
	case !s.shown(high, s.missed) && s.fullProbes(high) < maxFullProbes:
		return s.full(high), true
	}
	if load, stale := s.staleEnd(low, high); stale {
		return s.full(load), true
	}
	_, lowP := s.pValues(low, low)
	highP, _ := s.pValues(high, high)
	load := high
	if lowP > highP {
		load = low
	}
	return s.full(load), max(lowP, highP) > endAlpha && s.fullProbes(load) < maxFullProbes
}

// round returns a valid load: four digits of a rate, or a whole number.
func (s *Search) round(load float64) float64 {
	if s.Kind == Rate {
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(load, 'g', 4, 64), 64) // FormatFloat wrote it
		return rounded
	}
	return max(math.Round(load), 1)
}
