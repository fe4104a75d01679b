package step

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A Server is an engine and the processes around it: the one that launches its
// steps (Host) and the one that talks to clients (API). Like the engine it reads
// no clock: whoever drives it, by the wall clock or in virtual time, does
//
//	at, ok := s.Next()      // when something happens next; false: nothing before the next Add
//	...                     // wait until then; Add and Cancel may come meanwhile, and may bring it forward
//	s.Advance(at, deliver)  // let it happen
//
// Behind its one address may be several engines: Parallel.Data and Split say so.
type Server struct {
	p       Profile
	engines []*Engine // of a split the first ones only read
	hosts   []host
	api     api
	moving  transfers
	quiet   quiet
}

// NewServer returns an idle server.
func NewServer(p Profile, seed uint64) (*Server, error) {
	s := &Server{p: p}
	for i := range p.engines() {
		e, err := New(p, seed)
		if err != nil {
			return nil, err
		}
		e.rng = rand.New(rand.NewPCG(seed, uint64(i))) // of its own; how long answers are is the same for all
		s.engines = append(s.engines, e)
		if !p.Parallel.LockStep {
			s.hosts = append(s.hosts, newHost(&p, e))
		}
	}
	if p.Parallel.LockStep {
		s.hosts = append(s.hosts, newHost(&p, s.engines...))
	}
	s.api = newAPI(p)
	s.split()
	return s, nil
}

// Add hands over a request that arrived at now.
func (s *Server) Add(now time.Duration, r *Request) error {
	if s.find(r.ID) != nil {
		return fmt.Errorf("request %d is already in flight", r.ID)
	}
	s.CatchUp(now)
	e := leastLoaded(s.engines[:s.readers()])
	q, err := e.take(r)
	if err == nil {
		q.home, s.quiet.until = e, 0
		s.api.arrive(now, q)
	}
	return err
}

// readers is how many engines take requests.
func (s *Server) readers() int {
	if n := s.p.Split.Prefill; n > 0 {
		return n
	}
	return len(s.engines)
}

// leastLoaded is the engine with least to do. Those that wait count as vLLM counts
// them when it chooses one of its data-parallel ranks.
func leastLoaded(engines []*Engine) *Engine {
	return slices.MinFunc(engines, func(a, b *Engine) int {
		return 4*a.stats.Waiting + a.stats.Running - 4*b.stats.Waiting - b.stats.Running
	})
}

// find is the engine that has a request; nil: none.
func (s *Server) find(id uint64) *Engine {
	for _, e := range s.engines {
		if e.live[id] != nil {
			return e
		}
	}
	return nil
}

// TellLate lets the server deliver tokens later than they come out, with the
// times at which they did, and so compute far faster. It is for whoever goes by
// these times and by no clock. The last token of an answer is never late. What comes
// out while a request is added, or somebody looks, goes to tell. Call it before the
// first Add.
func (s *Server) TellLate(tell func(*Emission)) {
	for _, e := range s.engines {
		f := &e.flow
		f.on = s.api.direct() && s.p.decodesAlike() && e.handOver == nil
		f.longest = nobody
		f.needs = make([]int, s.p.KV.BlockTokens)
	}
	for i := range s.hosts {
		s.hosts[i].engines[0].jump.may = s.hosts[i].mayJump() && s.p.Split == Split{}
	}
	s.beQuiet(tell)
}

// CatchUp takes the steps up to now of a server that may tell late: it need not have
// come there. Whoever looks at it, or cancels a request, does it first.
func (s *Server) CatchUp(now time.Duration) {
	for i := range s.hosts {
		if h := &s.hosts[i]; h.phase == jumping {
			h.land(now)
		}
	}
	if s.quiet.on {
		s.Advance(now, s.quiet.tell)
	}
}

// decodesAlike says whether a step does the same to all sequences that decode.
func (p *Profile) decodesAlike() bool {
	return p.Speculation.DraftTokens == 0 && !p.Priority && p.LoRA.Slots == 0 && p.Parallel.Pipeline <= 1
}

// Cancel forgets a request: nothing more is delivered for it. What came out of it
// and was not told yet is returned.
func (s *Server) Cancel(now time.Duration, id uint64) (untold []time.Duration) {
	e := s.find(id)
	if e == nil {
		return nil
	}
	s.CatchUp(now - 1) // what happens now, happens after it
	q := e.live[id]
	e.Cancel(id)
	return append(q.place.earlier, e.tell(q)...)
}

// Next is when something happens next.
func (s *Server) Next() (time.Duration, bool) {
	at, _, ok := s.next()
	if ok && s.quiet.on {
		at = s.quiet.next(at, s)
	}
	return at, ok
}

// next is what happens next: to a host, or to nil, which is the API process or a
// transfer. Of what happens at one time that goes first.
func (s *Server) next() (at time.Duration, at1 *host, ok bool) {
	for i := range s.hosts {
		if t, busy := s.hosts[i].next(); busy && (!ok || t < at) {
			at, at1, ok = t, &s.hosts[i], true
		}
	}
	if t, busy := s.api.next(); busy && (!ok || t <= at) {
		at, at1, ok = t, nil, true
	}
	if len(s.moving) > 0 && (!ok || s.moving[0].at <= at) {
		at, at1, ok = s.moving[0].at, nil, true
	}
	return at, at1, ok
}

// Advance lets happen all that is due at now, in order. deliver is told of each
// event as it is written.
func (s *Server) Advance(now time.Duration, deliver func(*Emission)) {
	for {
		at, h, ok := s.next()
		switch {
		case !ok || at > now:
			return
		case h != nil:
			h.step(&s.api, deliver)
		case len(s.moving) > 0 && s.moving[0].at <= at:
			s.arrived(deliver)
		default:
			s.api.step(at, deliver)
		}
	}
}

// DropPrefixes empties the prefix cache, except for what sequences hold.
func (s *Server) DropPrefixes() {
	for _, e := range s.engines {
		e.DropPrefixes()
	}
}

// Stats is the state of all engines together now.
func (s *Server) Stats() Stats {
	all := s.engines[0].Stats()
	for _, e := range s.engines[1:] {
		all = all.Plus(e.Stats())
	}
	return all
}

// Plus is the state of two engines together.
func (s Stats) Plus(o Stats) Stats {
	return Stats{
		Running: s.Running + o.Running, Waiting: s.Waiting + o.Waiting, KVBlocks: s.KVBlocks + o.KVBlocks, KVUsedBlocks: s.KVUsedBlocks + o.KVUsedBlocks,
		PrefixQueryTokens: s.PrefixQueryTokens + o.PrefixQueryTokens, PrefixHitTokens: s.PrefixHitTokens + o.PrefixHitTokens,
		Steps: s.Steps + o.Steps, PromptTokens: s.PromptTokens + o.PromptTokens, GeneratedTokens: s.GeneratedTokens + o.GeneratedTokens,
		Preemptions: s.Preemptions + o.Preemptions, Finished: s.Finished + o.Finished, Cancelled: s.Cancelled + o.Cancelled, BusyTime: s.BusyTime + o.BusyTime,
	}
}
