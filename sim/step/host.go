package step

import (
	"math"
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

// A host launches the steps of an engine and hands out their results.
type host struct {
	c      Host
	engine *Engine
	phase  phase
	at     time.Duration // when the phase ends
	began  time.Duration // the launch, while there is one
	launch *batch
	flying []flying      // launched, in order
	gpu    time.Duration // when the GPU is done with all that was launched
}

// A flying step is one that the GPU works on, or will.
type flying struct {
	*batch
	done time.Duration
}

type phase int

const (
	idle      phase = iota
	planning        // a step is planned at the end of it
	launching       // a step is launched
	waiting         // for the GPU
)

func newHost(e *Engine, c Host) host {
	c.StepsInFlight = max(c.StepsInFlight, 1)
	return host{c: c, engine: e}
}

// next is when the host has something to do; false: nothing until a request
// comes.
func (h *host) next() (time.Duration, bool) {
	if h.phase != idle {
		return h.at, true
	}
	at, ok := h.engine.front.ready()
	if ok {
		at = h.takenIn(at)
	}
	return max(at, h.at), ok
}

// takenIn is when an idle engine has taken in the request that comes at that time,
// and those that come while it does so.
func (h *host) takenIn(at time.Duration) time.Duration {
	if h.c.PerArrivalMs == 0 && h.c.PerArrivalTokenUs == 0 {
		return at
	}
	for _, s := range h.engine.front.queue.items[h.engine.front.queue.head:] {
		if s.slot.through+h.engine.front.fixed > at {
			break
		}
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
		h.plan()
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
		h.engine.result(h.at, first.batch, func(s *seq, tokens int) { a.take(h.at, s, tokens, deliver) })
		a.taken()
		h.phase, h.at = planning, h.at+milliseconds(h.c.UpdateMs)
	}
}

// plan begins a step, if there is anything to compute.
func (h *host) plan() {
	if h.launch = h.engine.plan(h.at); h.launch != nil {
		h.phase, h.began, h.at = launching, h.at, h.at+h.launchTime(h.launch)
		return
	}
	h.await()
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
	b := h.launch
	if b.load.prefill == 0 {
		h.gpu = max(h.gpu, h.at) + b.took
	} else {
		h.gpu = max(max(h.gpu, h.began+milliseconds(h.c.LaunchMs))+b.took, h.at+milliseconds(h.c.TailMs))
	}
	h.flying = append(h.flying, flying{b, h.gpu})
	if len(h.flying) < h.c.StepsInFlight {
		h.phase = planning
		return
	}
	h.await()
}

func (h *host) launchTime(b *batch) time.Duration {
	ms := h.c.LaunchMs
	if b.load.prefill > 0 {
		ms = h.c.EagerMs
		if b.load.prefill+b.load.decode <= h.c.GraphTokens {
			ms = h.c.GraphMs
		}
		if h.c.Noise > 0 {
			ms *= math.Exp(h.c.Noise*h.engine.rng.NormFloat64() - h.c.Noise*h.c.Noise/2)
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
	more := time.Duration(0)
	for _, s := range h.engine.front.fresh(h.at) {
		more += h.arrivalTime(s)
	}
	return more
}
