package search

import (
	"cmp"
	"math"
	"slices"
)

// A queueFit is a queueing model fitted to the probes for one goal. Arrivals and lengths
// are known, so the model predicts the delay of each request. The fit maximizes R², the
// share of the variance of the logarithm of latency explained by the predicted delay.
type queueFit struct {
	queue
	phase phase
	r2    float64 // 0 is no fit
}

// A phase is the part of a request's latency predicted by the model for a goal.
type phase int

const (
	untilFirst phase = iota // until the end of the prefill
	decoding                // from there on, per unit of output length
	total
)

var phases = [...]phase{untilFirst, decoding, total}

// delays returns the predicted delay of each request of a schedule in seconds.
func (f queueFit) delays(schedule []arrival) []float64 {
	wait, rest := f.simulate(schedule)
	f.selectPhase(schedule, wait, rest)
	return wait
}

// selectPhase replaces the waits by the delays of the phase.
func (f queueFit) selectPhase(schedule []arrival, wait, rest []float64) {
	for i := range wait {
		switch f.phase {
		case decoding:
			wait[i] = rest[i] / schedule[i].output
		case total:
			wait[i] += rest[i]
		case untilFirst:
		}
	}
}

// logDelays returns the logarithms of the predicted delays.
func (f queueFit) logDelays(schedule []arrival) []float64 {
	out := f.delays(schedule)
	for i := range out {
		out[i] = f.logDelay(out[i])
	}
	return out
}

func (f queueFit) logDelay(seconds float64) float64 {
	return math.Log(seconds + f.decode/delayFloorDivisor)
}

// A trainingProbe is a probe as data for the fit: its arrivals, and the slowness of the
// requests of its steady part. Slowness is the logarithm of the ratio of the value to
// the limit.
type trainingProbe struct {
	schedule []arrival
	indices  []int // of the requests of the steady part, in schedule
	slowness []float64
}

// trainingProbes returns the probes near a load.
func (s *Search) trainingProbes(goal int, load float64) (out []trainingProbe) {
	for i := range s.Results {
		r := &s.Results[i]
		if !r.usable() || !r.Open() || r.Load > trainingRange*load || load > trainingRange*r.Load {
			continue
		}
		p := trainingProbe{schedule: r.schedule}
		for k, o := range r.window {
			if v := o.goals[goal]; v.n > 0 && !math.IsInf(v.logHeadroom, 0) {
				p.indices, p.slowness = append(p.indices, r.begin+k), append(p.slowness, -v.logHeadroom)
			}
		}
		if len(p.slowness) >= scoutRequests {
			out = append(out, p)
		}
	}
	return out
}

// fitPhase returns the phase of a queue with the highest R² within the probes. Only a
// positive correlation counts.
func fitPhase(q queue, probes []trainingProbe) (best queueFit) {
	var xx, xy, yy [len(phases)]float64
	for _, p := range probes {
		wait, rest := q.simulate(p.schedule)
		for i, phase := range phases {
			f := queueFit{queue: q, phase: phase}
			delay := slices.Clone(wait)
			f.selectPhase(p.schedule, delay, rest)
			n, x, y := float64(len(p.slowness)), 0.0, 0.0
			for k, at := range p.indices {
				delay[at] = f.logDelay(delay[at])
				x, y = x+delay[at]/n, y+p.slowness[k]/n
			}
			for k, at := range p.indices {
				dx, dy := delay[at]-x, p.slowness[k]-y
				xx[i], xy[i], yy[i] = xx[i]+dx*dx, xy[i]+dx*dy, yy[i]+dy*dy
			}
		}
	}
	for i, phase := range phases {
		if r2 := xy[i] * xy[i] / xx[i] / yy[i]; xy[i] > 0 && r2 > best.r2 {
			best = queueFit{q, phase, r2}
		}
	}
	return best
}

// fitQueue fits the queueing model for a goal near a load. It improves the best first
// guess with unlimited slots, and the best ones with a bounded number of slots.
func (s *Search) fitQueue(goal int, load float64) queueFit {
	probes, alone := s.trainingProbes(goal, load), s.unloadedLatency().Seconds()
	if s.Goals[goal].Metric == nil || len(probes) == 0 || alone == 0 {
		return queueFit{}
	}
	start := func(slots int) (best queueFit) {
		for _, share := range prefillShares {
			best = higherR2(best, fitPhase(startingQueue(load, alone, share, slots), probes))
		}
		return best
	}
	var bounded []queueFit
	latency := s.expectedLatency(load).Seconds() // load * latency requests are in flight (Little's law)
	for _, factor := range slotFactors {
		bounded = append(bounded, start(max(int(math.Ceil(factor*load*latency)), 1)))
	}
	slices.SortStableFunc(bounded, func(a, b queueFit) int { return cmp.Compare(b.r2, a.r2) })
	best := start(unlimited).climb(probes)
	for _, f := range bounded[:slotStarts] {
		best = higherR2(best, f.climb(probes))
	}
	return best
}

func higherR2(a, b queueFit) queueFit {
	if b.r2 > a.r2 {
		return b
	}
	return a
}

// climb improves a fit by coordinate ascent of R².
func (f queueFit) climb(probes []trainingProbe) queueFit {
	if f.r2 == 0 {
		return f
	}
	size := firstClimbStep
	for range maxClimbRounds {
		before := f.r2
		f = f.climbRound(probes, size)
		if f.r2-before < minClimbGain {
			size /= 2
		}
		if size < lastClimbStep {
			break
		}
	}
	return f
}

// climbRound tries each step of the ascent once, up and down.
func (f queueFit) climbRound(probes []trainingProbe, size float64) queueFit {
	for _, step := range queueSteps {
		for _, by := range []float64{size, -size / (1 + size)} {
			q := f.queue
			step(&q, by)
			if other := fitPhase(q, probes); other.r2 > f.r2 {
				f = other
				break
			}
		}
	}
	return f
}

// refit updates the estimates after a probe: the queueing model of each goal, the weights
// of requests for goals on means, and the miss curves of the other goals.
func (s *Search) refit() {
	s.curves = nil
	all := s.samples()
	best := s.fit(all)
	if s.process == nil || best.goal < 0 {
		return
	}
	s.sampleLengths()
	s.queues = make([]queueFit, len(s.Goals))
	for goal := range s.Goals {
		s.queues[goal] = s.fitQueue(goal, best.load)
		if s.Goals[goal].Mean {
			s.postStratify(goal, best.load)
		}
	}
	for range curveRounds {
		s.curves = s.newCurves(all, best.load, s.simulated())
		best = s.fit(all)
	}
}
