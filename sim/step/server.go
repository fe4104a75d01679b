package step

import "time"

// A Server is an engine and the processes around it: the one that launches its
// steps (Host) and the one that talks to clients (API). Like the engine it reads
// no clock: whoever drives it, by the wall clock or in virtual time, does
//
//	at, ok := s.Next()      // when something happens next; false: nothing before the next Add
//	...                     // wait until then; Add and Cancel may come meanwhile, and may bring it forward
//	s.Advance(at, deliver)  // let it happen
type Server struct {
	engine *Engine
	host   host
	api    api
}

// NewServer returns an idle server.
func NewServer(p Profile, seed uint64) (*Server, error) {
	e, err := New(p, seed)
	if err != nil {
		return nil, err
	}
	return &Server{engine: e, host: newHost(e, p.Host), api: newAPI(e, p)}, nil
}

// Add hands over a request that arrived at now.
func (s *Server) Add(now time.Duration, r *Request) error {
	q, err := s.engine.take(r)
	if err == nil {
		s.api.arrive(now, q)
	}
	return err
}

// TellLate lets the server deliver tokens later than they come out, with the
// times at which they did, and so compute far faster. It is for whoever goes by
// these times and by no clock. The last token of an answer is never late. Call it
// before the first Add.
func (s *Server) TellLate() {
	f := &s.engine.flow
	f.on = s.api.direct() && s.engine.p.decodesAlike()
	f.longest = nobody
	f.needs = make([]int, s.engine.p.KV.BlockTokens)
}

// decodesAlike says whether a step does the same to all sequences that decode.
func (p *Profile) decodesAlike() bool {
	return p.Speculation.DraftTokens == 0 && !p.Priority && p.LoRA.Slots == 0
}

// Cancel forgets a request: nothing more is delivered for it. What came out of it
// and was not told yet is returned.
func (s *Server) Cancel(id uint64) (untold []time.Duration) {
	q := s.engine.live[id]
	if q == nil {
		return nil
	}
	s.engine.Cancel(id)
	return append(q.place.earlier, s.engine.tell(q)...)
}

// Next is when something happens next.
func (s *Server) Next() (time.Duration, bool) {
	at, busy := s.host.next()
	if t, ok := s.api.next(); ok && (!busy || t <= at) {
		return t, true
	}
	return at, busy
}

// Advance lets happen all that is due at now, in order. deliver is told of each
// event as it is written.
func (s *Server) Advance(now time.Duration, deliver func(*Emission)) {
	for {
		at, busy := s.host.next()
		t, ok := s.api.next()
		switch {
		case ok && t <= now && (!busy || t <= at):
			s.api.step(t, deliver)
		case busy && at <= now:
			s.host.step(&s.api, deliver)
		default:
			return
		}
	}
}

// DropPrefixes empties the prefix cache, except for what sequences hold.
func (s *Server) DropPrefixes() { s.engine.DropPrefixes() }

// Stats is the state of the engine now.
func (s *Server) Stats() Stats { return s.engine.Stats() }
