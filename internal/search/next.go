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
	if _, changed := s.drift(); changed || missed || s.noLoadHolds() {
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
			return s.full(from), s.holdsBelow(from, decideAlpha) < from && s.fullProbes(from) < maxFullProbes
		}
	}
	return scout(load), true
}

// down returns a probe of a lower load than one that misses, if none holds. One
// request at a time is the lowest load: if it misses, no load holds.
func (s *Search) down(high float64) (Probe, bool) {
	switch {
	case s.Kind != Rate && high <= 1:
		return Probe{}, false
	case high <= s.aloneLoad() && !s.hasFullAlone():
		return s.fullAlone(), true
	case s.Kind == Rate && s.fewDecide(high): // only long probes see whether the load matters
		return s.full(s.round(high / scoutStep)), true
	}
	return s.short(s.round(high / scoutStep)), true
}

// fewDecide reports whether a few clusters of misses decide a probe of a load.
func (s *Search) fewDecide(load float64) bool {
	return slices.ContainsFunc(s.Results, func(r Result) bool { return r.Load == load && s.few(r) > 0 })
}

// noLoadHolds reports whether no load holds: the lowest load tried misses, and is far
// below one request at a time, or has hardly fewer misses than higher loads.
func (s *Search) noLoadHolds() bool {
	_, high := s.bracket()
	lowest := math.Inf(1)
	for _, r := range s.Results {
		if r.usable() && !r.Effort.Scout {
			lowest = min(lowest, r.Load)
		}
	}
	switch {
	case high == 0 || high > lowest:
		return false
	case s.Kind != Rate:
		return high <= 1
	case high < s.aloneLoad()/lowestLoadFactor:
		return true
	}
	for i := range s.Goals {
		if s.missesPersist(i, lowest) {
			return true
		}
	}
	return false
}

// missesPersist reports whether the misses of a goal hardly depend on the load: twice the
// lowest load and less has more than half of the misses of higher loads. An overloaded
// server would answer as many requests in time as at the higher load.
func (s *Search) missesPersist(goal int, lowest float64) bool {
	g := s.Goals[goal]
	var below, above Evidence
	var goodBelow, goodAbove float64 // highest rate of requests that keep the goal
	for _, r := range s.Results {
		e := r.Goals[goal]
		switch good := r.Load * (1 - e.Share); {
		case !r.usable() || r.Effort.Scout || r.Verdict == Overrun || r.burst > 0 || e.Share > maxPersistentShare:
		case r.Load <= nearStep*lowest:
			below, goodBelow = below.plus(g, e), max(goodBelow, good)
		case r.Load <= lowestLoadFactor*lowest:
			above, goodAbove = above.plus(g, e), max(goodAbove, good)
		}
	}
	if above.Count == 0 || below.Count == 0 || goodAbove < persistentGrowth*goodBelow {
		return false
	}
	alone, _ := below.pValues(g)
	both, _ := below.plus(g, above).pValues(g)
	return below.missRatio(g) > max(1, persistentMissShare*above.missRatio(g)) && alone <= decideAlpha && both <= fullAlpha
}

// refine narrows a wide bracket by short probes at the estimated limit. Then it measures
// a load just below the estimate and one just above it, until both are proved.
func (s *Search) refine(low, high float64) (Probe, bool) {
	switch {
	case s.outages(low, high):
		p := s.full(s.round(high / scoutStep))
		p.Effort.MinTime = s.timeLeft() / fullBudgetDivisor
		return p, true
	case s.missesSince(low) >= recheckMisses && s.onlyScouted(low):
		if s.fewDecide(high) {
			return s.full(low), true
		}
		return s.short(low), true
	case s.whyNotSent(low) != "" && high/low <= clientLimitRatio:
		return s.full(low), s.holdsBelow(low, decideAlpha) < low && s.fullProbes(low) < maxFullProbes
	}
	best := s.estimate(low, high)
	if high/low > wideBracket {
		margin := math.Pow(high/low, wideBracketMargin)
		if load := s.round(min(max(best, low*margin), high/margin)); low < load && load < high {
			return s.short(load), true
		}
	}
	from, to := s.holdsBelow(low, decideAlpha), s.missesAbove(high, decideAlpha)
	if from > 0 && to > 0 {
		switch between := math.Round((from + to) / 2); {
		case to/from <= 1+foundFactor*s.Within, s.adjacent(from, to) && (to == from+1 || s.fullProbes(between) > 0):
			return Probe{}, false
		case s.adjacent(from, to):
			return s.full(between), true
		}
	}
	if from == 0 || to > 0 && best/from >= to/best {
		return s.full(s.beside(best, -belowMargin)), true
	}
	return s.full(s.beside(best, aboveMargin)), true
}

// outages reports whether few clusters of failed requests decide near the bracket, and no
// long probe of a much lower load has shown whether requests fail there, too.
func (s *Search) outages(low, high float64) bool {
	_, goal, ok := s.rhythm(low, high)
	return ok && s.Goals[goal].Metric == nil && s.Kind == Rate && !slices.ContainsFunc(s.Results, func(r Result) bool {
		return r.usable() && r.Effort.Full && r.Load <= 2*high/scoutStep
	})
}

// adjacent reports whether at most one whole number is between two loads.
func (s *Search) adjacent(from, to float64) bool { return s.Kind != Rate && to <= from+2 }

// beside returns a load at a distance of the estimated limit, in units of Within. Each
// probe between the two increases the distance, because a load nearer to the limit needs
// more requests. A load that was measured close to it is measured again.
func (s *Search) beside(best, margin float64) float64 {
	n := 0.0
	for _, r := range s.Results {
		away := math.Log(r.Load/best) / (margin * s.Within) // above 0 on the same side
		n += indicator(r.usable() && r.Effort.Full && away > 0 && away < maxMarginGrowth)
	}
	want := best * (1 + margin*s.Within*min(1+marginGrowth*n, maxMarginGrowth))
	if margin < 0 {
		want = best / (1 - margin*s.Within*min(1+marginGrowth*n, maxMarginGrowth))
	}
	load := s.round(want)
	if s.Kind != Rate {
		if margin < 0 {
			return max(math.Floor(want), 1)
		}
		return math.Ceil(want)
	}
	for _, r := range s.Results {
		if r.usable() && r.Effort.Full && math.Abs(math.Log(r.Load/want)) < sameLoad*s.Within {
			load = r.Load
		}
	}
	if s.To > 0 {
		load = min(load, s.To)
	}
	return load
}

// estimate returns the estimated limit inside the bracket: the lowest load at which the
// value of a goal crosses its limit. It is the geometric mean of the ends if there is no
// such load, or if the last short probes were all on one side of it.
func (s *Search) estimate(low, high float64) float64 {
	middle := math.Sqrt(low * high)
	if high/low > wideBracket && s.oneSided() {
		return middle
	}
	best := math.Inf(1)
	for i := range s.Goals {
		best = min(best, s.crossing(i, middle))
	}
	if best = min(best, s.acceptedRate()); best <= low || best >= high {
		return middle
	}
	return best
}

// crossing returns the load at which a goal breaks, by a regression of the logarithm of
// its value on the logarithm of the load. Probes near the crossing have the highest
// weight, so the regression is repeated around its result.
func (s *Search) crossing(goal int, at float64) float64 {
	for range fitRounds {
		var n, x, y, xx, xy float64
		for _, r := range s.Results {
			e := r.Goals[goal]
			pressure := e.Pressure
			if s.Goals[goal].reportsShare() { // a share may be 0
				pressure = (e.Share*e.Count + 0.5) / (s.Goals[goal].Share*e.Count + 0.5)
			}
			if !r.usable() || r.Effort.Scout || !(pressure > 0) {
				continue
			}
			distance := math.Log(r.Load / at)
			weight := e.Count * (math.Exp(-distance*distance/(2*fitReach*fitReach)) + farWeight)
			value := min(max(math.Log(pressure), -maxLogPressure), maxLogPressure)
			n, x, y = n+weight, x+weight*distance, y+weight*value
			xx, xy = xx+weight*distance*distance, xy+weight*distance*value
		}
		if n == 0 {
			return math.Inf(1)
		}
		prior := defaultPowerWeight
		power := (xy - x*y/n + prior*defaultPower) / (xx - x*x/n + prior)
		power = min(max(power, minPower), maxPower)
		at *= math.Exp(min(max((x-y/power)/n, -maxFitStep), maxFitStep))
	}
	return at
}

// oneSided reports whether the last probes but scouts were all on one side of the limit.
func (s *Search) oneSided() bool {
	missed, n := 0.0, 0
	for _, r := range slices.Backward(s.Results) {
		if r.usable() && !r.Effort.Scout && n < oneSidedProbes {
			missed += indicator(s.missed(r))
			n++
		}
	}
	return n == oneSidedProbes && (missed == 0 || missed == oneSidedProbes)
}

// round returns a valid load: four digits of a rate, or a whole number.
func (s *Search) round(load float64) float64 {
	if s.Kind == Rate {
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(load, 'g', 4, 64), 64) // FormatFloat wrote it
		return rounded
	}
	return max(math.Round(load), 1)
}
