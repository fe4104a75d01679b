package step

import (
	"math"
	"slices"
	"time"
)

// Host is the work of the processor on each step. Without it the GPU's time is
// all that a step takes.
type Host struct {
	StepsInFlight int `yaml:"steps_in_flight"` // 2: a step is launched before the one before it is done; 0 and 1: one at a time

	LaunchMs      float64 `yaml:"launch_ms"`       // to plan and launch a step that only decodes
	GraphMs       float64 `yaml:"graph_ms"`        // one with prompt tokens, but no more than GraphTokens in all
	GraphTokens   int     `yaml:"graph_tokens"`    // what CUDA graphs were captured for
	EagerMs       float64 `yaml:"eager_ms"`        // one with prompt tokens, and more than that
	PerSequenceUs float64 `yaml:"per_sequence_us"` // for each sequence in the step
	PerNewMs      float64 `yaml:"per_new_ms"`      // for each request that was not in the step before
	Noise         float64 `yaml:"noise"`           // standard deviation of the logarithm of GraphMs and EagerMs

	TailMs   float64 `yaml:"tail_ms"`   // least that the GPU still computes after the launch of a step with prompt tokens
	UpdateMs float64 `yaml:"update_ms"` // to take a step's result

	PerArrivalMs      float64 `yaml:"per_arrival_ms"`       // to take a request in: one that comes during a launch holds it up
	PerArrivalTokenUs float64 `yaml:"per_arrival_token_us"` // by this much more for each token of its prompt
}

// A host launches the steps of an engine and hands out their results. Several
// engines in lock step have one host: each step is a step of all of them.
type host struct {
	c       Host
	engines []*Engine
	stages  int           // of a pipeline
	hop     time.Duration // from one stage to the next
	phase   phase
	at      time.Duration // when the phase ends
	began   time.Duration // the launch, while there is one
	launch  joint
	flying  []flying      // launched, in order
	free    time.Duration // when the GPU, or the first of a pipeline, can begin the next step
	done    time.Duration // when all that was launched is done
	spare   []joint
}

// A joint step is one batch of each engine; nil is an engine with nothing to do.
type joint []*batch

// took is how long the slowest takes.
func (j joint) took() (longest time.Duration) {
	for _, b := range j {
		if b != nil {
			longest = max(longest, b.took)
		}
	}
	return longest
}

// prefills says whether there are prompt tokens in it.
func (j joint) prefills() bool {
	return slices.ContainsFunc(j, func(b *batch) bool { return b != nil && b.load.prefill > 0 })
}

// A flying step is one that the GPU works on, or will.
type flying struct {
	joint
	done time.Duration
}

type phase int

const (
	idle      phase = iota
	planning        // a step is planned at the end of it
	launching       // a step is launched
	waiting         // for the GPU
	jumping         // over steps that only decode
)

func newHost(p *Profile, engines ...*Engine) host {
	h := host{c: p.Host, engines: engines, stages: max(p.Parallel.Pipeline, 1), hop: milliseconds(p.Parallel.HopMs)}
	h.c.StepsInFlight = max(h.c.StepsInFlight, h.stages) // each stage has a step of its own
	return h
}

// next is when the host has something to do; false: nothing until a request
// comes.
func (h *host) next() (time.Duration, bool) {
	if h.phase != idle {
		return h.at, true
	}
	first, found := time.Duration(0), false
	for _, e := range h.engines {
		if at, ok := e.front.ready(); ok {
			if at = h.takenIn(e, at); !found || at < first {
				first, found = at, true
			}
		}
	}
	return max(first, h.at), found
}

// takenIn is when an idle engine has taken in the request that comes at that time.
// It begins with that one: those that come meanwhile hold up its launch.
func (h *host) takenIn(e *Engine, at time.Duration) time.Duration {
	if s := e.front.queue.peek(); s != nil {
		at += h.arrivalTime(s)
	}
	return at
}

// arrivalTime is the work of taking a request in.
func (h *host) arrivalTime(s *seq) time.Duration {
	return milliseconds(h.c.PerArrivalMs + h.c.PerArrivalTokenUs*float64(s.Prompt)/1e3)
}

// step does it.
func (h *host) step(a *api, deliver func(*Emission)) {
	h.at, _ = h.next()
	switch h.phase {
	case idle, planning:
		if !h.jump() {
			h.plan()
		}
	case jumping:
		h.land(h.at)
	case launching:
		if more := h.heldUp(); more > 0 {
			h.at += more
			h.began += more // the GPU waits, too
			return
		}
		h.launched()
	case waiting:
		first := h.flying[0]
		h.flying = append(h.flying[:0], h.flying[1:]...)
		for i, b := range first.joint {
			if b != nil {
				h.engines[i].result(h.at, b, func(s *seq, tokens int) { a.take(h.at, s, tokens, deliver) })
			}
		}
		h.spare = append(h.spare, first.joint)
		a.taken()
		h.phase, h.at = planning, h.at+milliseconds(h.c.UpdateMs)
	}
}

// plan begins a step, if there is anything to compute.
func (h *host) plan() {
	j := h.joint()
	busy, launch := false, time.Duration(0)
	for i, e := range h.engines {
		if j[i] = e.plan(h.at); j[i] != nil {
			busy, launch = true, max(launch, h.launchTime(e, j[i]))
		}
	}
	if h.launch = j; busy {
		h.phase, h.began, h.at = launching, h.at, h.at+launch
		return
	}
	h.spare = append(h.spare, j)
	h.await()
}

// joint is an empty one; its room may be that of an old one.
func (h *host) joint() joint {
	last := len(h.spare) - 1
	if last < 0 {
		return make(joint, len(h.engines))
	}
	j := h.spare[last]
	h.spare = h.spare[:last]
	return j
}

// await waits for the step that is over next, if any is under way.
func (h *host) await() {
	h.phase = idle
	if len(h.flying) > 0 {
		h.phase, h.at = waiting, max(h.at, h.flying[0].done)
	}
}

// launched is called when a launch is over: a step of decodes then begins on the
// GPU. One with prompt tokens began while it was launched.
func (h *host) launched() {
	took := h.launch.took()
	begins, least := max(h.free, h.at), time.Duration(0)
	if h.launch.prefills() {
		begins, least = max(h.free, h.began+milliseconds(h.c.LaunchMs)), h.at+milliseconds(h.c.TailMs)
	}
	// A step goes through the stages one after the other, behind the one before it.
	stage := took / time.Duration(h.stages)
	h.done = max(begins+took+time.Duration(h.stages-1)*h.hop, h.done+stage, least)
	if h.free = begins + stage; h.stages == 1 {
		h.free = h.done
	}
	h.flying = append(h.flying, flying{h.launch, h.done})
	if len(h.flying) < h.c.StepsInFlight {
		h.phase = planning
		return
	}
	h.await()
}

func (h *host) launchTime(e *Engine, b *batch) time.Duration {
	ms := h.c.LaunchMs
	if b.load.prefill > 0 {
		ms = h.c.EagerMs
		if b.load.prefill+b.load.decode <= h.c.GraphTokens {
			ms = h.c.GraphMs
		}
		if h.c.Noise > 0 {
			ms *= math.Exp(h.c.Noise*e.rng.NormFloat64() - h.c.Noise*h.c.Noise/2)
		}
		ms += h.c.PerNewMs * float64(b.new)
	}
	return milliseconds(ms + h.c.PerSequenceUs*float64(b.load.sequences)/1e3)
}

// heldUp is how much longer the launch takes for requests that came meanwhile.
func (h *host) heldUp() time.Duration {
	if h.c.PerArrivalMs == 0 && h.c.PerArrivalTokenUs == 0 {
		return 0
	}
	longest := time.Duration(0)
	for _, e := range h.engines {
		more := time.Duration(0)
		for _, s := range e.front.fresh(h.at) {
			more += h.arrivalTime(s)
		}
		longest = max(longest, more)
	}
	return longest
}
