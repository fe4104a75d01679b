package step

import "time"

// API is the process that talks to clients. One thread reads requests and writes
// tokens; its tasks run one after the other. If a profile has no API section,
// FrontEnd describes the work before the engine.
type API struct {
	LatencyMs         float64 `yaml:"latency_ms"`           // delay of a request before the process works on it
	RequestMs         float64 `yaml:"request_ms"`           // work on a request
	RequestPerTokenUs float64 `yaml:"request_per_token_us"` // work on each prompt token
	Turns             int     `yaml:"turns"`                // number of tasks the work on a request is divided into; other tasks run between them
	SubmitMs          float64 `yaml:"submit_ms"`            // last task of a request; afterwards the engine receives the request
	HandOverMs        float64 `yaml:"hand_over_ms"`         // latency between the API process and the engine, in both directions

	StepMs      float64 `yaml:"step_ms"`      // to receive the output of a step
	TokenUs     float64 `yaml:"token_us"`     // for each token of the output
	PieceTokens int     `yaml:"piece_tokens"` // other tasks run after this many tokens; 0: only after the last token
	EventUs     float64 `yaml:"event_us"`     // to write an event with all pending tokens of an answer
	EndMs       float64 `yaml:"end_ms"`       // to end an answer
	CloseMs     float64 `yaml:"close_ms"`     // from the last token to the end of the answer
}

// An api is the state of the API process.
type api struct {
	c        API
	on       bool
	perEvent time.Duration // FrontEnd.PerEventMs of a profile without an API section

	arrivals queue[*seq]       // not yet polled
	outputs  queue[stepOutput] // step outputs of the engine, not yet polled
	batch    []output          // the step output being received
	batchAt  time.Duration
	spare    [][]output // slices to reuse
	ending   int        // answers whose last token is generated but not yet written

	tasks        queue[task] // ready to run
	pass         int         // tasks to run before sockets are polled again
	now          task        // the running task
	busy         bool
	free         time.Duration     // when the running task ends, or the last task ended
	unforwarded  queue[stepOutput] // polled outputs, not yet forwarded
	at           int               // forwarded tokens of the first output
	emission     Emission          // reused for every emission
	outputQueued bool              // a taskOutput is ready or running
}

// A stepOutput is the output of a step and the time at which the API process can
// read the output.
type stepOutput struct {
	at  time.Duration
	out []output
}

type task struct {
	kind taskKind
	s    *seq
}

type taskKind uint8

const (
	taskRequest taskKind = iota // one part of the work on a request
	taskSubmit                  // the last part of the work on a request
	taskOutput                  // forward the engine's output to the answers
	taskEvent                   // write an event
	taskEnd                     // end an answer
)

func newAPI(p Profile) api {
	a := api{c: p.API, on: p.API != API{}}
	if !a.on {
		a.c = API{EventUs: 1e3 * p.FrontEnd.PerEventMs}
		a.perEvent = milliseconds(p.FrontEnd.PerEventMs)
	}
	a.c.Turns = max(a.c.Turns, 1)
	if a.c.PieceTokens == 0 {
		a.c.PieceTokens = maxCount
	}
	return a
}

// arrive receives a request from a client.
func (a *api) arrive(now time.Duration, s *seq) {
	if !a.on {
		s.home.front.add(now, s)
		return
	}
	s.arrived = now + milliseconds(a.c.LatencyMs)
	if n := a.arrivals.len(); n > 0 {
		s.arrived = max(s.arrived, a.arrivals.last().arrived) // requests are polled in order
	}
	a.arrivals.push(s)
}

// direct reports whether tokens are delivered at the time they are generated.
func (a *api) direct() bool { return !a.on && a.perEvent == 0 }

// accept receives tokens from the engine.
func (a *api) accept(now time.Duration, s *seq, tokens int, deliver func(*Emission)) {
	if a.direct() {
		s.emission(&a.emission, now, s.emitted-tokens, tokens)
		deliver(&a.emission)
		return
	}
	if s.finished {
		a.ending++
	}
	a.batchAt = now + milliseconds(a.c.HandOverMs)
	a.batch = append(a.batch, output{s, tokens})
}

// endStep completes the output of a step.
func (a *api) endStep() {
	if len(a.batch) > 0 {
		a.outputs.push(stepOutput{a.batchAt, a.batch})
		a.batch = nil
		if n := len(a.spare); n > 0 {
			a.batch, a.spare = a.spare[n-1], a.spare[:n-1]
		}
	}
}

// next returns when the running task ends or the next task can start.
func (a *api) next() (time.Duration, bool) {
	if a.busy || a.tasks.len() > 0 {
		return a.free, true
	}
	at, ok := time.Duration(0), false
	if a.arrivals.len() > 0 {
		at, ok = a.arrivals.first().arrived, true
	}
	if a.outputs.len() > 0 && (!ok || a.outputs.first().at < at) {
		at, ok = a.outputs.first().at, true
	}
	return max(at, a.free), ok
}

// step ends the running task, if there is one, and starts the next.
func (a *api) step(now time.Duration, deliver func(*Emission)) {
	a.free = now
	if a.busy {
		a.busy = false
		if a.end(a.now, deliver) {
			return // end started another task
		}
	}
	if a.pass == 0 {
		a.poll()
		a.pass = a.tasks.len()
	}
	if a.pass > 0 {
		a.pass--
		a.begin(a.tasks.pop())
	}
}

// poll queues the requests and outputs received since the last poll.
func (a *api) poll() {
	for a.arrivals.len() > 0 && a.arrivals.first().arrived <= a.free {
		a.tasks.push(task{taskRequest, a.arrivals.pop()})
	}
	for a.outputs.len() > 0 && a.outputs.first().at <= a.free {
		a.unforwarded.push(a.outputs.pop())
		if !a.outputQueued {
			a.outputQueued = true
			a.tasks.push(task{taskOutput, nil})
		}
	}
}

// begin starts a task. A task of a cancelled request takes no time.
func (a *api) begin(t task) {
	a.now, a.busy = t, true
	us := 0.0
	switch t.kind {
	case taskRequest:
		us = (1e3*a.c.RequestMs + a.c.RequestPerTokenUs*float64(t.s.Prompt)) / float64(a.c.Turns)
	case taskSubmit:
		us = 1e3 * a.c.SubmitMs
	case taskOutput:
		us = a.c.TokenUs * float64(a.piece())
		if a.at == 0 {
			us += 1e3 * a.c.StepMs
		}
	case taskEvent:
		us = a.c.EventUs
	case taskEnd:
		us = 1e3 * a.c.EndMs
	}
	if t.s != nil && t.s.cancelled && t.kind != taskEnd {
		us = 0
	}
	a.free += milliseconds(us / 1e3)
}

// piece is the number of output entries forwarded by one task.
func (a *api) piece() int { return min(a.c.PieceTokens, len(a.unforwarded.first().out)-a.at) }

// end completes a task and reports whether another task started in its place.
func (a *api) end(t task, deliver func(*Emission)) bool {
	s := t.s
	switch t.kind {
	case taskRequest:
		kind := taskRequest
		if s.turns++; s.turns >= a.c.Turns {
			kind = taskSubmit
		}
		a.tasks.push(task{kind, s})
	case taskSubmit:
		if !s.cancelled {
			s.home.front.add(a.free+milliseconds(a.c.HandOverMs), s)
		}
	case taskOutput:
		return a.forward()
	case taskEvent:
		return a.write(s, deliver)
	case taskEnd:
	}
	return false
}

// forward gives a piece of a step's output to its answers. The next piece waits
// behind other tasks; the output of the next step starts immediately.
func (a *api) forward() bool {
	first := a.unforwarded.first()
	n := a.piece()
	for _, o := range first.out[a.at : a.at+n] {
		o.s.pending += o.tokens
		if !o.s.writing {
			o.s.writing = true
			a.tasks.push(task{taskEvent, o.s})
		}
	}
	if a.at += n; a.at < len(first.out) {
		a.tasks.push(task{taskOutput, nil})
		return false
	}
	a.at = 0
	clear(first.out)
	a.spare = append(a.spare, first.out[:0])
	a.unforwarded.pop()
	if a.unforwarded.len() == 0 {
		a.outputQueued = false
		return false
	}
	a.begin(task{taskOutput, nil})
	return true
}

// write delivers all pending tokens of an answer.
func (a *api) write(s *seq, deliver func(*Emission)) bool {
	s.writing = false
	if s.cancelled {
		return false // the client disconnected
	}
	m := &a.emission
	s.emission(m, a.free, s.written, s.pending)
	s.written, s.pending = s.written+s.pending, 0
	if m.Last {
		a.ending--
		m.Ends += milliseconds(a.c.CloseMs)
	}
	deliver(m)
	if m.Last && a.c.EndMs > 0 {
		a.begin(task{taskEnd, s})
		return true
	}
	return false
}

type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }
func (q *queue[T]) push(x T) { q.items = append(q.items, x) }
func (q *queue[T]) first() T { return q.items[q.head] }
func (q *queue[T]) last() T  { return q.items[len(q.items)-1] }

func (q *queue[T]) pop() T {
	var none T
	x := q.items[q.head]
	q.items[q.head] = none // for the garbage collector
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head > 1024 && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return x
}
