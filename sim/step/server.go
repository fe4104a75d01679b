package step

import (
	"slices"
	"time"
)

// A Server is an engine and the process that writes its answers. Like the
// engine it reads no clock: whoever drives it, by the wall clock or in virtual
// time, does
//
//	at, ok := s.Next()      // when something happens next; false: nothing before the next Add
//	...                     // wait until then; Add and Cancel may come meanwhile, and may bring it forward
//	s.Advance(at, deliver)  // let it happen
type Server struct {
	engine *Engine
	now    time.Duration // the end of the latest step
	out    outbox
}

// NewServer returns an idle server.
func NewServer(p Profile, seed uint64) (*Server, error) {
	e, err := New(p, seed)
	if err != nil {
		return nil, err
	}
	return &Server{engine: e, out: outbox{work: milliseconds(p.FrontEnd.PerEventMs)}}, nil
}

// Add hands over a request that arrived at now.
func (s *Server) Add(now time.Duration, r *Request) error { return s.engine.Add(now, r) }

// Cancel forgets a request: nothing more is delivered for it.
func (s *Server) Cancel(id uint64) {
	s.engine.Cancel(id)
	s.out.forget(id)
}

// Next is when something happens next: a step ends, or an event is written.
func (s *Server) Next() (time.Duration, bool) {
	end, busy := s.engine.Next(s.now)
	if at, writing := s.out.next(); writing && (!busy || at <= end) {
		return at, true
	}
	return end, busy
}

// Advance lets happen all that is due at now, in order. deliver is told of each
// event as it is written.
func (s *Server) Advance(now time.Duration, deliver func(Emission)) {
	for {
		end, busy := s.engine.Next(s.now)
		at, writing := s.out.next()
		switch {
		case writing && at <= now && (!busy || at <= end):
			deliver(s.out.write())
		case busy && end <= now:
			s.now = end
			s.engine.Finish(func(e Emission) {
				if s.out.work == 0 {
					deliver(e)
				} else {
					s.out.add(e)
				}
			})
		default:
			return
		}
	}
}

// DropPrefixes empties the prefix cache, except for what sequences hold.
func (s *Server) DropPrefixes() { s.engine.DropPrefixes() }

// Stats is the state of the engine now.
func (s *Server) Stats() Stats { return s.engine.Stats() }

// An outbox is where events wait to be written, one after the other over all
// answers. What comes for an answer while it waits goes with it.
type outbox struct {
	work    time.Duration // on each event
	queue   []uint64      // answers that wait, in order
	pending map[uint64]*Emission
	done    time.Duration // when the first of them is written; when the last was, if none waits
}

func (o *outbox) add(e Emission) {
	if p := o.pending[e.ID]; p != nil {
		e.Tokens += p.Tokens
		e.First = e.First || p.First
		*p = e
		return
	}
	if len(o.queue) == 0 {
		o.done = max(o.done, e.At) + o.work
	}
	if o.pending == nil {
		o.pending = map[uint64]*Emission{}
	}
	o.queue = append(o.queue, e.ID)
	o.pending[e.ID] = &e
}

func (o *outbox) next() (time.Duration, bool) { return o.done, len(o.queue) > 0 }

// write takes out the event that is written next.
func (o *outbox) write() Emission {
	id := o.queue[0]
	e := *o.pending[id]
	e.At = o.done
	o.drop(0)
	return e
}

func (o *outbox) forget(id uint64) {
	if i := slices.Index(o.queue, id); i >= 0 {
		o.drop(i)
	}
}

// drop takes out the i-th answer that waits. The first of the others is taken up
// where the one before it ends.
func (o *outbox) drop(i int) {
	delete(o.pending, o.queue[i])
	if i > 0 {
		o.queue = slices.Delete(o.queue, i, i+1)
		return
	}
	o.queue = o.queue[1:]
	if len(o.queue) > 0 {
		o.done += o.work
	}
}
