package step

import (
	"slices"
	"time"
)

// A transfer is keys and values on their way from an engine that read a prompt.
type transfer struct {
	at time.Duration // it arrives
	s  *seq
}

// transfers are in the order in which they arrive.
type transfers []transfer

// split has the engines that only read hand over what they have read. The keys and
// values of what leaves are free at once.
func (s *Server) split() {
	c := &s.p.Split
	for _, e := range s.engines[:c.Prefill] {
		free := time.Duration(0) // when the link is
		e.handOver = func(at time.Duration, q *seq) {
			free = max(free, at) + milliseconds(s.p.KV.moveMs(q.Prompt, c.GBPerS))
			arrives := free + milliseconds(c.LatencyMs)
			i, _ := slices.BinarySearchFunc(s.moving, arrives+1, func(t transfer, at time.Duration) int { return int(t.at - at) })
			s.moving = slices.Insert(s.moving, i, transfer{arrives, q})
		}
	}
	if c.Prefill > 0 {
		for _, e := range s.engines[c.Prefill:] {
			e.front = newFrontEnd(FrontEnd{}) // the request has been through one
		}
	}
}

// arrived takes the next transfer in: the first token comes out, and the engine
// with least to do goes on.
func (s *Server) arrived(deliver func(*Emission)) {
	t := s.moving[0]
	s.moving = slices.Delete(s.moving, 0, 1)
	q := t.s
	if q.cancelled {
		return
	}
	q.home.forget(q)
	s.api.take(t.at, q, q.said, deliver)
	s.api.taken()
	q.home = leastLoaded(s.engines[s.p.Split.Prefill:])
	q.home.goOn(t.at, q)
}

// leaveFor takes a sequence out of the batch that is to go on elsewhere. It waits
// until it is there.
func (e *Engine) leaveFor(at time.Duration, s *seq) {
	if !s.inBatch {
		return // it was preempted, and reads its prompt once more
	}
	e.running = slices.DeleteFunc(e.running, func(o *seq) bool { return o == s })
	e.kv.release(&s.blocks)
	e.adapters.leave(s)
	s.inBatch = false
	e.stats.Running--
	e.stats.Waiting++
	e.handOver(at, s)
}

// forget is called when it is.
func (e *Engine) forget(s *seq) {
	delete(e.live, s.ID)
	e.stats.Waiting--
}

// goOn takes a sequence in whose keys and values are there.
func (e *Engine) goOn(now time.Duration, s *seq) {
	e.live[s.ID] = s
	e.stats.Waiting++
	s.computed, s.prefill, s.whole = 0, s.context(), true
	e.front.add(now, s)
}
