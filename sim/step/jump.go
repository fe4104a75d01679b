package step

import "time"

// A jump is steps that only decode, worked out at once: until a sequence ends or a
// request comes nothing else can happen, and each of them is the one before with
// longer contexts. They are taken when the last one is over, or up to a moment at
// which somebody comes or looks.
type jump struct {
	may   bool
	from  time.Duration   // when the first step begins
	ends  []time.Duration // of the steps
	drawn queue[float64]  // random numbers of steps that have not begun
}

const (
	leastJump = 2 // steps: for fewer it is not worth while
	mostJump  = 256
)

// mayJump says whether steps of a host follow one another at once, so that those
// that only decode can be jumped over.
func (h *host) mayJump() bool {
	return len(h.engines) == 1 && h.stages == 1 && h.c == Host{StepsInFlight: 1} && h.engines[0].flow.on
}

// jump begins one where that is possible.
func (h *host) jump() bool {
	e := h.engines[0]
	if !e.jump.may || !e.foresee(h.at) {
		return false
	}
	h.phase, h.at = jumping, e.jump.ends[len(e.jump.ends)-1]
	return true
}

// land ends a jump at a moment, and begins the step that is under way then.
func (h *host) land(now time.Duration) {
	h.at = h.engines[0].takeSteps(now)
	h.free, h.done = h.at, h.at
	if h.plan(); h.phase == launching {
		h.launched()
	}
}

// foresee works out the steps from now on that only decode; false: there are too few
// of them.
func (e *Engine) foresee(now time.Duration) bool {
	f := &e.flow
	if f.n == 0 || len(e.running) != f.n || len(f.outside)+len(e.preempted)+e.waiting.len() > 0 || f.n > e.p.StepTokens {
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
		now += e.p.stepTime(one, e.normal(k))
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

// began says that so many steps have their random numbers.
func (e *Engine) began(steps int) {
	if e.p.Cost.Noise > 0 {
		for range steps {
			e.jump.drawn.pop()
		}
	}
}

// takeSteps takes those of a jump that are over by then, and says when the last is.
func (e *Engine) takeSteps(now time.Duration) time.Duration {
	f, ends := &e.flow, e.jump.ends
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
