package step

import "time"

// A jump computes many decode-only steps together. Until a sequence ends or a
// request arrives, each step equals the previous one with longer contexts. The
// steps take effect when the last one ends, or earlier when a request arrives or
// the server is inspected.
type jump struct {
	may   bool
	from  time.Duration   // when the first step begins
	ends  []time.Duration // of the steps
	drawn queue[float64]  // random numbers of future steps
}

const (
	leastJump = 2 // steps; fewer are not worth the overhead
	mostJump  = 256
)

// mayJump reports whether the host's steps follow one another without gaps, which
// allows decode-only steps to be computed together.
func (h *host) mayJump() bool {
	return len(h.engines) == 1 && h.stages == 1 && h.c == Host{StepsInFlight: 1} && h.engines[0].group.on
}

// jump begins a jump if possible.
func (h *host) jump() bool {
	e := h.engines[0]
	if !e.jump.may || !e.planJump(h.at) {
		return false
	}
	h.phase, h.at = jumping, e.jump.ends[len(e.jump.ends)-1]
	return true
}

// endJump ends a jump at now and begins the step that is running at now.
func (h *host) endJump(now time.Duration) {
	h.at = h.engines[0].takeSteps(now)
	h.free, h.done = h.at, h.at
	if h.plan(); h.phase == launching {
		h.launchDone()
	}
}

// planJump computes the decode-only steps from now on. It returns false if there
// are too few.
func (e *Engine) planJump(now time.Duration) bool {
	f := &e.group
	if f.n == 0 || len(e.running) != f.n || len(f.candidates)+len(e.preempted)+e.waiting.len() > 0 || f.n > e.p.StepTokens {
		return false
	}
	most := min(f.leaving[0].at-f.planned-1, mostJump)
	arrival, arrives := e.front.ready()
	room := e.kv.total - e.kv.used()
	one := load{decode: f.n, sequences: f.n}
	e.jump.from, e.jump.ends = now, e.jump.ends[:0]
	for k := 0; k < most && (!arrives || arrival > now); k++ {
		if room -= f.needsIn(k); room < 0 {
			break
		}
		one.decodeContext = float64(f.context + k*f.n)
		one.longestContext = max(0, f.longest+f.planned+k)
		now += e.p.Pauses.extend(now, e.p.stepTime(one, e.normal(k)))
		e.jump.ends = append(e.jump.ends, now)
	}
	return len(e.jump.ends) >= leastJump
}

// normal is the random number of the k-th step from now on.
func (e *Engine) normal(k int) float64 {
	if e.p.Cost.Noise == 0 {
		return 0
	}
	drawn := &e.jump.drawn
	if k == drawn.len() {
		drawn.push(e.rng.NormFloat64())
	}
	return drawn.items[drawn.head+k]
}

// began drops the random numbers of the given number of steps.
func (e *Engine) began(steps int) {
	if e.p.Cost.Noise > 0 {
		for range steps {
			e.jump.drawn.pop()
		}
	}
}

// takeSteps finishes the steps of a jump that end by now and returns when the last
// of them ended.
func (e *Engine) takeSteps(now time.Duration) time.Duration {
	f, ends := &e.group, e.jump.ends
	k, blocks := 0, 0
	for ; k < len(ends) && ends[k] <= now; k++ {
		blocks += f.needsIn(k)
	}
	if k == 0 {
		return e.jump.from
	}
	e.kv.claim(blocks)
	e.began(k)
	e.plans += int64(k)
	e.waitedSteps += k
	e.stats.Steps += int64(k)
	e.stats.BusyTime += ends[k-1] - e.jump.from
	e.stats.GeneratedTokens += int64(k * f.n)
	f.planned += k
	f.context += k * f.n
	if f.times = append(f.times, ends[:k]...); len(f.times) > f.trimAt {
		e.trim()
	}
	return ends[k-1]
}
