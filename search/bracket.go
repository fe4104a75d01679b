package search

import (
	"cmp"
	"math"
	"slices"
)

// tells says whether a result counts for the bracket.
func (r Result) tells() bool { return r.Verdict != Void && !r.Alone }

// ratio is how far a goal's evidence is from its limit: above 1 it is beyond. For a
// percentile it is a ratio of shares, because shares of several probes add up.
func (e Evidence) ratio(g Goal) float64 {
	if g.Mean {
		return e.Pressure
	}
	return e.Share / g.Share
}

// passed says whether a probe by itself had enough requests and kept all goals.
func (s *Search) passed(r Result) bool {
	return r.tells() && r.Enough && r.Verdict != Overrun && r.Verdict != Misses && s.worst(r) <= 1
}

// missed says whether a probe by itself missed a goal.
func (s *Search) missed(r Result) bool {
	return r.tells() && (r.Verdict.Missed() || s.worst(r) > 1)
}

// worst is the highest ratio of all goals.
func (s *Search) worst(r Result) (most float64) {
	for i, e := range r.Goals {
		most = max(most, e.ratio(s.Goals[i]))
	}
	return most
}

// A pool is a load, or several that contradict each other, of an isotonic regression.
type pool struct {
	loads       []float64
	sum, weight float64
}

func (p pool) mean() float64 { return p.sum / p.weight }

// with returns a pool of both.
func (p pool) with(o pool) pool {
	return pool{slices.Concat(p.loads, o.loads), p.sum + o.sum, p.weight + o.weight}
}

// isotonic returns the ratio of a goal at each load of full probes, made to rise
// with the load: probes that contradict each other are averaged by their sizes.
func (s *Search) isotonic(goal int) map[float64]float64 {
	var pools []pool
	for _, one := range s.byLoad(goal) {
		for n := len(pools); n > 0 && pools[n-1].mean() > one.mean(); n = len(pools) {
			one, pools = pools[n-1].with(one), pools[:n-1]
		}
		pools = append(pools, one)
	}
	out := map[float64]float64{}
	for _, one := range pools {
		for _, load := range one.loads {
			out[load] = one.mean()
		}
	}
	return out
}

// byLoad returns what all full probes of a load say of a goal together, by rising load.
func (s *Search) byLoad(goal int) (out []pool) {
	const most = 100 // times the limit; an overloaded server must not outweigh all other probes of its pool
	for _, r := range s.Results {
		e := r.Goals[goal]
		if !r.tells() || r.Effort.Rough || e.Count == 0 {
			continue
		}
		one := pool{[]float64{r.Load}, min(e.ratio(s.Goals[goal]), most) * e.Count, e.Count}
		i, same := slices.BinarySearchFunc(out, r.Load, func(p pool, load float64) int { return cmp.Compare(p.loads[0], load) })
		if same {
			out[i] = out[i].with(one)
		} else {
			out = slices.Insert(out, i, one)
		}
	}
	return out
}

// leaning returns the highest ratio of all goals at each load of full probes.
func (s *Search) leaning() map[float64]float64 {
	out := map[float64]float64{}
	for i := range s.Goals {
		for load, ratio := range s.isotonic(i) {
			out[load] = max(out[load], ratio)
		}
	}
	return out
}

// bracket returns the highest load that seems to hold and the lowest above it that
// seems to miss; 0 if there is none. Scouts count only far from full probes.
func (s *Search) bracket() (low, high float64) {
	full := s.leaning()
	highest := func(below float64) (load float64) {
		for one, ratio := range full {
			if ratio <= 1 && (below == 0 || one < below) {
				load = max(load, one)
			}
		}
		return load
	}
	low = highest(0)
	high = s.lowestMiss(full, low)
	if high > 0 && low >= high { // requests queued below
		low = highest(high)
	}
	const far = 1.3 // a scout ends before a load near the limit shows its effect
	low = max(low, s.scouted(high/far))
	if low == 0 { // better than none
		low = s.scouted(high)
	}
	return low, high
}

// scouted returns the highest load below another at which a scout held; 0 if there is
// none.
func (s *Search) scouted(below float64) (load float64) {
	for _, r := range s.Results {
		if r.tells() && r.Effort.Rough && !s.missed(r) && (below == 0 || r.Load < below) {
			load = max(load, r.Load)
		}
	}
	return load
}

// lowestMiss returns the lowest load that seems to miss, or that the client cannot
// send; 0 if there is none.
func (s *Search) lowestMiss(full map[float64]float64, low float64) (high float64) {
	lowest := func(load float64) {
		if high == 0 || load < high {
			high = load
		}
	}
	for load, ratio := range full {
		if ratio > 1 {
			lowest(load)
		}
	}
	for _, r := range s.Results {
		if s.tooMuch(r) || r.tells() && r.Load > low && (r.Verdict == Overrun || r.Effort.Rough && s.missed(r)) {
			lowest(r.Load)
		}
	}
	return high
}

// onlyScouted says whether a load had no probe but scouts.
func (s *Search) onlyScouted(load float64) bool {
	return !slices.ContainsFunc(s.Results, func(r Result) bool { return r.tells() && r.Load == load && !r.Effort.Rough })
}

// enough says whether a load had a full probe with enough requests.
func (s *Search) enough(load float64) bool {
	return slices.ContainsFunc(s.Results, func(r Result) bool { return r.tells() && r.Load == load && r.Enough })
}

// shown says whether a probe with enough requests shows something of a load by itself.
func (s *Search) shown(load float64, by func(Result) bool) bool {
	return slices.ContainsFunc(s.Results, func(r Result) bool { return r.Load == load && r.Enough && by(r) })
}

// older returns the end of the bracket that has no probe since both were measured
// first, so that a server that changes is noticed; false if there is none.
func (s *Search) older(low, high float64) (load float64, ok bool) {
	first, last := map[float64]int{}, map[float64]int{}
	for i, r := range s.Results {
		if _, seen := first[r.Load]; r.tells() && !seen {
			first[r.Load] = i
		}
		if r.tells() {
			last[r.Load] = i
		}
	}
	if first[low] < first[high] {
		return low, last[low] < first[high]
	}
	return high, last[high] < first[low]
}

// missesAbove counts the full probes that missed since a load was measured last.
func (s *Search) missesAbove(load float64) (n int) {
	for _, r := range slices.Backward(s.Results) {
		if r.tells() && r.Load == load {
			break
		}
		n += int(failed(r.tells() && !r.Effort.Rough && r.Load > load && s.missed(r)))
	}
	return n
}

// alone says whether one request at a time held, and whether it certainly missed. A
// few requests prove a miss only if all goals but failures are far beyond.
func (s *Search) alone() (held, missed bool) {
	for _, r := range s.Results {
		if r.Alone && r.Verdict != Void {
			held = !r.Verdict.Missed() && s.worst(r) <= 1 || held && !r.Enough
			missed = r.Enough && (r.Verdict.Missed() || s.worst(r) > 1)
		}
	}
	return held, missed
}

// enoughAlone says whether one request at a time had a full probe.
func (s *Search) enoughAlone() bool {
	return slices.ContainsFunc(s.Results, func(r Result) bool { return r.Alone && r.Verdict != Void && r.Enough })
}

// wide is the ratio of the ends of a bracket above which short probes narrow it.
const wide = 1.2

// between proposes a load inside the bracket, or its low end if the bracket is narrow
// enough. Far from the limit it is the limit by what the probes show together. Near
// it, a load just below and a load just above that estimate follow.
func (s *Search) between(low, high float64) (load float64, near bool) {
	ratio, best := high/low, s.estimate(low, high)
	narrow := 1 + s.Within
	below, above := 1+0.2*s.Within, 1+0.6*s.Within
	switch {
	case ratio <= narrow:
		return low, true
	case ratio > wide:
		margin := math.Pow(ratio, 0.15)
		return min(max(best, low*margin), high/margin), false
	case best > low*below*below:
		return min(best/below, high/below), true
	}
	return min(max(best, low)*above, high/below), true
}

// fulls counts the full probes of a load.
func (s *Search) fulls(load float64) (n int) {
	for _, r := range s.Results {
		n += int(failed(r.tells() && r.Load == load && r.Enough))
	}
	return n
}

// estimate is the limit by all probes together, inside the bracket. If the fit has no
// answer there, it is the crossing of a line through the goals' values at both ends on
// logarithmic axes, or the middle.
func (s *Search) estimate(low, high float64) float64 {
	if best := s.cross(s.samples()); best.goal >= 0 && best.load > low && best.load < high && !s.oneSided() {
		return best.load
	}
	best := math.Inf(1)
	for i := range s.Goals {
		a, b := s.pressure(i, low), s.pressure(i, high)
		if a > 0 && a < 1 && b > 1 && !math.IsInf(b, 0) {
			best = min(best, low*math.Pow(high/low, math.Log(a)/math.Log(a/b)))
		}
	}
	if math.IsInf(best, 0) || s.oneSided() {
		return math.Sqrt(low * high)
	}
	return best
}

// tried returns bounds of the fit: half the lowest and 1.2 times the highest load.
func (s *Search) tried() (low, high float64) {
	low, high = math.Inf(1), 0
	for _, r := range s.Results {
		if !r.Alone {
			low, high = min(low, r.Load), max(high, r.Load)
		}
	}
	return low / 2, max(high*1.2, 1.01*low)
}

// oneSided says whether the last three full probes were all on one side of the
// limit: the line is wrong then.
func (s *Search) oneSided() bool {
	sides, n := 0.0, 0
	for _, r := range slices.Backward(s.Results) {
		if r.tells() && !r.Effort.Rough && n < 3 {
			sides += failed(s.missed(r))
			n++
		}
	}
	return n == 3 && (sides == 0 || sides == 3)
}

// pressure is how near a goal is to its limit at a load, on average.
func (s *Search) pressure(goal int, load float64) float64 {
	sum, n := 0.0, 0.0
	for _, r := range s.Results {
		if e := r.Goals[goal]; r.tells() && r.Load == load && e.Pressure > 0 {
			sum, n = sum+e.Count*math.Log(e.Pressure), n+e.Count
		}
	}
	if n == 0 {
		return 0
	}
	return math.Exp(sum / n)
}

// chances says how likely all probes between two loads would be if the loads just
// missed a goal, and if they just kept all goals.
func (s *Search) chances(low, high float64) (ifMissed, ifHeld float64) {
	ifHeld = 1
	for i, g := range s.Goals {
		var all Evidence
		for _, r := range s.Results {
			if !r.tells() || r.Effort.Rough || r.Load < low || r.Load > high {
				continue
			}
			if r.Verdict == Overrun {
				ifHeld = 0
			}
			all = all.plus(g, r.Goals[i])
		}
		asBad, asGood := all.chances(g)
		ifMissed, ifHeld = max(ifMissed, asGood), min(ifHeld, asBad*float64(len(s.Goals)))
	}
	return ifMissed, ifHeld
}

// plus adds the evidence of another probe.
func (e Evidence) plus(g Goal, o Evidence) Evidence {
	if e.Count == 0 || o.Count == 0 {
		if e.Count == 0 {
			return o
		}
		return e
	}
	sum := Evidence{Count: e.Count + o.Count, N: e.N + o.N}
	sum.Share = (e.Count*e.Share + o.Count*o.Share) / sum.Count
	sum.Bad = sum.Share * sum.N
	if g.Mean {
		sum.Spread = math.Hypot(e.N*e.Spread, o.N*o.Spread) / sum.N
		return sum.at(g, (e.N*e.Value+o.N*o.Value)/sum.N)
	}
	return sum
}

const (
	// intervalDoubt is the chance that either end of the interval is wrong.
	intervalDoubt = 0.025
	// methodOff widens the interval, because each probe begins with an empty server.
	methodOff = 1.02
)

// interval returns the highest load that certainly holds and the lowest that
// certainly misses, without a model: if a load missed, all above it would miss, too,
// so the probes between it and the bracket count together. 0 is none.
func (s *Search) interval(low, high float64) (surely, surelyNot float64) {
	for _, r := range s.Results {
		if !r.tells() {
			continue
		}
		if r.Load <= low && r.Load > surely {
			if ifMissed, _ := s.chances(r.Load, low); ifMissed <= intervalDoubt {
				surely = r.Load
			}
		}
		if r.Load >= high && high > 0 && (surelyNot == 0 || r.Load < surelyNot) {
			if _, ifHeld := s.chances(high, r.Load); ifHeld <= intervalDoubt {
				surelyNot = r.Load
			}
		}
	}
	return surely / methodOff, surelyNot * methodOff
}

// A change is a contradiction between two probes, in the order of time.
type change struct {
	before, after Result
	how           string
}

// drift finds two probes that contradict each other, because the server changed in
// between: one held a load and the other missed a load that was not higher, or
// requests took longer at a load that was not higher. A scout does not fill a server,
// so it counts only if its requests took longer all the same.
func (s *Search) drift() (found change, changed bool) {
	for i, a := range s.Results {
		for _, b := range s.Results[i+1:] {
			full := !a.Effort.Rough
			switch {
			case !a.tells() || !b.tells() || b.Effort.Rough:
			case full && b.Load <= a.Load && (s.contradict(b, a) || tookLonger(a, b)):
				return change{a, b, "slower"}, true
			case a.Load <= b.Load && (full && s.contradict(a, b) || tookLonger(b, a)):
				return change{a, b, "faster"}, true
			}
		}
	}
	return change{}, false
}

// contradict says whether random variation hardly explains that one probe missed and
// another, of a load that was not lower, held.
func (s *Search) contradict(missed, held Result) bool {
	const doubt = 0.005 * 0.005 // of both together; there are many pairs of probes
	alone := func(r Result) (ifMissed, ifHeld float64) {
		one := Search{Goals: s.Goals, Results: []Result{r}}
		return one.chances(r.Load, r.Load)
	}
	_, a := alone(missed)
	b, _ := alone(held)
	return held.Verdict != Overrun && max(a, b) <= fullDoubt && a*b <= doubt
}

// tookLonger says whether requests certainly took longer in a second probe. Latencies of
// an overloaded server depend on how long the probe lasts, so they do not count.
func tookLonger(a, b Result) bool {
	const (
		byLog = 0.18 // 20 %: a smaller change moves the limit by less than it is known
		z     = 6.0  // standard errors; there are many pairs of probes, and errors are estimates
	)
	if a.Verdict.Missed() || b.Verdict.Missed() || len(a.window) < fullSize/shorter {
		return false
	}
	rise := b.latency - a.latency
	return rise > byLog && rise > z*math.Hypot(a.latencyError, b.latencyError)
}
