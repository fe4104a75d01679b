package step

import "time"

// API is the process that talks to clients: one thread, which takes requests in
// and hands tokens out, in turns. All its work is done one after the other.
// Without it FrontEnd describes what is before the engine.
type API struct {
	LatencyMs         float64 `yaml:"latency_ms"`           // of a request before anybody works on it
	RequestMs         float64 `yaml:"request_ms"`           // work on a request ...
	RequestPerTokenUs float64 `yaml:"request_per_token_us"` // ... and on each token of its prompt ...
	Turns             int     `yaml:"turns"`                // ... in so many turns, between which others have theirs
	SubmitMs          float64 `yaml:"submit_ms"`            // last turn: after it the engine gets it
	HandOverMs        float64 `yaml:"hand_over_ms"`         // from one process to the other, either way

	StepMs      float64 `yaml:"step_ms"`      // to take the output of a step
	TokenUs     float64 `yaml:"token_us"`     // for each token of it
	PieceTokens int     `yaml:"piece_tokens"` // others have a turn after so many of them; 0: not before the last
	EventUs     float64 `yaml:"event_us"`     // to write an event: all the tokens that an answer has by then
	EndMs       float64 `yaml:"end_ms"`       // for the end of an answer
	CloseMs     float64 `yaml:"close_ms"`     // from the last token to the end of the answer
}

// An api is the API process.
type api struct {
	c        API
	on       bool
	perEvent time.Duration // of a FrontEnd

	arrivals queue[*seq]  // not yet seen
	outputs  queue[given] // of the engine, not yet seen
	batch    []output     // the step being handed over by the engine
	batchAt  time.Duration
	spare    [][]output // that were handed on
	ending   int        // answers whose last token the engine has made, and that are not over

	tasks  queue[task] // that are ready
	pass   int         // of those, how many are done before sockets are looked at again
	now    task        // the task under way
	busy   bool
	free   time.Duration // when it ends, or the last one ended
	seen   queue[given]  // outputs that were seen and are not handed on
	at     int           // tokens of the first of these that are
	told   Emission      // the latest
	taking bool          // a task that hands outputs on is ready or under way
}

// given is the output of a step, and when the API process can have it.
type given struct {
	at  time.Duration
	out []output
}

type task struct {
	kind taskKind
	s    *seq
}

type taskKind uint8

const (
	taskRequest taskKind = iota // a turn of the work on a request
	taskSubmit                  // the last
	taskOutput                  // hand on what the engine made
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

// arrive takes a request that comes from a client.
func (a *api) arrive(now time.Duration, s *seq) {
	if !a.on {
		s.home.front.add(now, s)
		return
	}
	s.arrived = now + milliseconds(a.c.LatencyMs)
	if n := a.arrivals.len(); n > 0 {
		s.arrived = max(s.arrived, a.arrivals.last().arrived) // they are seen in order
	}
	a.arrivals.push(s)
}

// direct says whether tokens go out the moment they are made.
func (a *api) direct() bool { return !a.on && a.perEvent == 0 }

// take gets tokens from the engine.
func (a *api) take(now time.Duration, s *seq, tokens int, deliver func(*Emission)) {
	if a.direct() {
		s.emission(&a.told, now, s.said-tokens, tokens)
		deliver(&a.told)
		return
	}
	if s.over {
		a.ending++
	}
	a.batchAt = now + milliseconds(a.c.HandOverMs)
	a.batch = append(a.batch, output{s, tokens})
}

// taken ends the output of a step.
func (a *api) taken() {
	if len(a.batch) > 0 {
		a.outputs.push(given{a.batchAt, a.batch})
		a.batch = nil
		if n := len(a.spare); n > 0 {
			a.batch, a.spare = a.spare[n-1], a.spare[:n-1]
		}
	}
}

// next is when the process has done something, or has something to do.
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

// step ends the task under way, if there is one, and begins the next.
func (a *api) step(now time.Duration, deliver func(*Emission)) {
	a.free = now
	if a.busy {
		a.busy = false
		if a.end(a.now, deliver) {
			return // it goes on
		}
	}
	if a.pass == 0 {
		a.look()
		a.pass = a.tasks.len()
	}
	if a.pass > 0 {
		a.pass--
		a.begin(a.tasks.pop())
	}
}

// look sees what has come since it last did.
func (a *api) look() {
	for a.arrivals.len() > 0 && a.arrivals.first().arrived <= a.free {
		a.tasks.push(task{taskRequest, a.arrivals.pop()})
	}
	for a.outputs.len() > 0 && a.outputs.first().at <= a.free {
		a.seen.push(a.outputs.pop())
		if !a.taking {
			a.taking = true
			a.tasks.push(task{taskOutput, nil})
		}
	}
}

// begin starts a task. A request that was given up takes no time.
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

// piece is how many requests' tokens are handed on in one turn.
func (a *api) piece() int { return min(a.c.PieceTokens, len(a.seen.first().out)-a.at) }

// end does what a task was for. It says whether another goes on in its place.
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
		return a.handOn()
	case taskEvent:
		return a.write(s, deliver)
	case taskEnd:
	}
	return false
}

// handOn gives a piece of a step's output to the answers it is for. The next
// piece waits for its turn; the output of the next step does not.
func (a *api) handOn() bool {
	first := a.seen.first()
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
	a.seen.pop()
	if a.seen.len() == 0 {
		a.taking = false
		return false
	}
	a.begin(task{taskOutput, nil})
	return true
}

// write delivers all the tokens that an answer has by now.
func (a *api) write(s *seq, deliver func(*Emission)) bool {
	s.writing = false
	if s.cancelled {
		return false // its client is gone
	}
	m := &a.told
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

// A queue is first in, first out.
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
