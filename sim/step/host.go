package step

import (
	"math"
	"slices"
	"time"
)

// Host is the CPU's work on each step. Without a host, a step takes only the GPU's
// time.
type Host struct {
	StepsInFlight int `yaml:"steps_in_flight"` // 2: a step is launched before the previous step is done; 0 and 1: one step at a time

	LaunchMs      float64 `yaml:"launch_ms"`       // to plan and launch a decode-only step
	GraphMs       float64 `yaml:"graph_ms"`        // to launch a step with prompt tokens and at most GraphTokens tokens
	GraphTokens   int     `yaml:"graph_tokens"`    // largest step covered by captured CUDA graphs
	EagerMs       float64 `yaml:"eager_ms"`        // to launch a step with prompt tokens and more than GraphTokens tokens
	PerSequenceUs float64 `yaml:"per_sequence_us"` // for each sequence in the step
	PerNewMs      float64 `yaml:"per_new_ms"`      // for each request that was not in the previous step
	Noise         float64 `yaml:"noise"`           // standard deviation of the logarithm of GraphMs and EagerMs

	TailMs   float64 `yaml:"tail_ms"`   // minimum GPU time after the launch of a step with prompt tokens
	UpdateMs float64 `yaml:"update_ms"` // to process a step's result

	PerArrivalMs      float64 `yaml:"per_arrival_ms"`       // to receive a request; if it arrives during a launch, the launch is delayed
	PerArrivalTokenUs float64 `yaml:"per_arrival_token_us"` // added for each token of the prompt
}

// A host launches the steps of an engine and emits their results. Several engines
// in lock step share one host, and each step is a step of all of them.
type host struct {
	c        Host
	engines  []*Engine
	stages   int           // of a pipeline
	hop      time.Duration // latency from one stage to the next
	phase    phase
	at       time.Duration // when the phase ends
	began    time.Duration // start of the current launch
	launch   jointStep
	launches []launchedStep // launched, in order
	free     time.Duration  // when the GPU, or the first stage of a pipeline, can begin the next step
	done     time.Duration  // when all launched steps are done
	spare    []jointStep
}

// A jointStep is one batch of each engine, nil if the engine has nothing to do.
type jointStep []*batch

// took is the duration of the slowest batch.
func (j jointStep) took() (longest time.Duration) {
	for _, b := range j {
		if b != nil {
			longest = max(longest, b.took)
		}
	}
	return longest
}

// A launchedStep is a step that the GPU computes now or later.
type launchedStep struct {
	jointStep
	done time.Duration
}

type phase int

const (
	idle      phase = iota
	planning        // a step is planned at the end of the phase
	launching       // a step is being launched
	waiting         // for the GPU
)

func newHost(p *Profile, engines ...*Engine) host {
	h := host{c: p.Host, engines: engines, stages: max(p.Parallel.Pipeline, 1), hop: milliseconds(p.Parallel.HopMs)}
	h.c.StepsInFlight = max(h.c.StepsInFlight, h.stages) // each stage has a step of its own
	return h
}

// next returns when the host has something to do, and false if it is idle until the
// next request.
func (h *host) next() (time.Duration, bool) {
	if h.phase != idle {
		return h.at, true
	}
	first, found := time.Duration(0), false
	for _, e := range h.engines {
		if at, ok := e.front.ready(); ok {
			if at = h.admittedAt(e, at); !found || at < first {
				first, found = at, true
			}
		}
	}
	return max(first, h.at), found
}

// admittedAt returns when an idle engine has received the request that arrives at
// the given time. Requests that arrive meanwhile delay its launch instead.
func (h *host) admittedAt(e *Engine, at time.Duration) time.Duration {
	if s := e.front.queue.peek(); s != nil {
		at += h.arrivalTime(s)
	}
	return at
}

// arrivalTime is the time to receive a request.
func (h *host) arrivalTime(s *seq) time.Duration {
	return milliseconds(h.c.PerArrivalMs + h.c.PerArrivalTokenUs*float64(s.Prompt)/1e3)
}

// step ends the current phase.
func (h *host) step(a *api, deliver func(*Emission)) {
	h.at, _ = h.next()
	switch h.phase {
	case idle, planning:
		h.plan()
	case launching:
		if more := h.arrivalDelay(); more > 0 {
			h.at += more
			h.began += more // the GPU waits as well
			return
		}
		h.launchDone()
	case waiting:
		first := h.launches[0]
		h.launches = append(h.launches[:0], h.launches[1:]...)
		for i, b := range first.jointStep {
			if b != nil {
				h.engines[i].result(h.at, b, func(s *seq, tokens int) { a.accept(h.at, s, tokens, deliver) })
			}
		}
		h.spare = append(h.spare, first.jointStep)
		a.endStep()
		h.phase, h.at = planning, h.at+milliseconds(h.c.UpdateMs)
	}
}

// plan begins a step if there is work.
func (h *host) plan() {
	j := h.newJoint()
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

// newJoint returns an empty joint step and reuses memory if possible.
func (h *host) newJoint() jointStep {
	last := len(h.spare) - 1
	if last < 0 {
		return make(jointStep, len(h.engines))
	}
	j := h.spare[last]
	h.spare = h.spare[:last]
	return j
}

// await waits for the next launched step, if there is one.
func (h *host) await() {
	h.phase = idle
	if len(h.launches) > 0 {
		h.phase, h.at = waiting, max(h.at, h.launches[0].done)
	}
}

// launchDone is called when a launch ends. A decode-only step then begins on the
// GPU. A step with prompt tokens began during its launch.
func (h *host) launchDone() {
	took := h.launch.took()
	begins, least := max(h.free, h.at), time.Duration(0)
	if slices.ContainsFunc(h.launch, func(b *batch) bool { return b != nil && b.load.prefill > 0 }) {
		begins, least = max(h.free, h.began+milliseconds(h.c.LaunchMs)), h.at+milliseconds(h.c.TailMs)
	}
	// A step passes the stages one after the other, behind the previous step.
	stage := took / time.Duration(h.stages)
	h.done = max(begins+took+time.Duration(h.stages-1)*h.hop, h.done+stage, least)
	if h.free = begins + stage; h.stages == 1 {
		h.free = h.done
	}
	h.launches = append(h.launches, launchedStep{h.launch, h.done})
	if len(h.launches) < h.c.StepsInFlight {
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

// arrivalDelay is the delay of the launch by requests that arrived during the
// launch.
func (h *host) arrivalDelay() time.Duration {
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
