package step

import (
	"slices"
	"time"
)

// A transfer moves the keys and values of a prompt from a prefill engine to a
// decode engine.
type transfer struct {
	at time.Duration // arrival
	s  *seq
}

// transfers are in order of arrival.
type transfers []transfer

// split makes the prefill engines hand off prefilled sequences. Their blocks are
// freed at the start of the transfer.
func (s *Server) split() {
	c := &s.p.Split
	for _, e := range s.engines[:c.Prefill] {
		free := time.Duration(0) // when the link becomes free
		e.handOver = func(at time.Duration, q *seq) {
			free = max(free, at) + milliseconds(s.p.KV.moveMs(q.Prompt, c.GBPerS))
			arrives := free + milliseconds(c.LatencyMs)
			i, _ := slices.BinarySearchFunc(s.moving, arrives+1, func(t transfer, at time.Duration) int { return int(t.at - at) })
			s.moving = slices.Insert(s.moving, i, transfer{arrives, q})
		}
	}
	if c.Prefill > 0 {
		for _, e := range s.engines[c.Prefill:] {
			e.front = newFrontEnd(FrontEnd{}) // the prefill engine had the front end
		}
	}
}

// arrived completes the next transfer: the first token is delivered, and the least
// loaded decode engine continues.
func (s *Server) arrived(deliver func(*Emission)) {
	t := s.moving[0]
	s.moving = slices.Delete(s.moving, 0, 1)
	q := t.s
	if q.cancelled {
		return
	}
	delete(q.home.live, q.ID)
	q.home.stats.Waiting--
	s.api.accept(t.at, q, q.emitted, deliver)
	s.api.endStep()
	q.home = leastLoaded(s.engines[s.p.Split.Prefill:])
	q.home.resume(t.at, q)
}

// handOff removes a sequence that will decode on another engine from the batch. The
// sequence counts as waiting during the transfer.
func (e *Engine) handOff(at time.Duration, s *seq) {
	if !s.inBatch {
		return // the sequence was preempted and must prefill again
	}
	e.running = slices.DeleteFunc(e.running, func(o *seq) bool { return o == s })
	e.kv.release(&s.blocks)
	e.adapters.release(s)
	s.inBatch = false
	e.stats.Running--
	e.stats.Waiting++
	e.handOver(at, s)
}

// resume adds a sequence whose keys and values were transferred.
func (e *Engine) resume(now time.Duration, s *seq) {
	e.live[s.ID] = s
	e.stats.Waiting++
	s.computed, s.prefill, s.transferred = 0, s.context(), true
	e.front.add(now, s)
}
