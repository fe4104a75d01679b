package step

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A Server is an engine and the processes around it: the host process, which
// launches steps (Host), and the API process, which talks to clients (API). A
// Server reads no clock. The caller, in real or virtual time, repeats
//
//	at, ok := s.Next()      // time of the next event; false: none before the next Add
//	...                     // wait until then; Add and Cancel may make the next event earlier
//	s.Advance(at, deliver)  // process all events up to at
//
// A server may contain several engines (Parallel.Data and Split).
type Server struct {
	p       Profile
	engines []*Engine // with Split, the first engines only prefill
	hosts   []host
	api     api
	moving  transfers
}

// NewServer returns an idle server.
func NewServer(p Profile, seed uint64) (*Server, error) {
	s := &Server{p: p}
	for i := range p.engines() {
		e, err := New(p, seed)
		if err != nil {
			return nil, err
		}
		e.rng = rand.New(rand.NewPCG(seed, uint64(i))) // each engine has its own generator; output lengths depend on the seed alone
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
	e := leastLoaded(s.engines[:s.readers()])
	q, err := e.take(r)
	if err == nil {
		q.home = e
		s.api.arrive(now, q)
	}
	return err
}

// readers is the number of engines open to new requests.
func (s *Server) readers() int {
	if n := s.p.Split.Prefill; n > 0 {
		return n
	}
	return len(s.engines)
}

// leastLoaded returns the engine with the smallest load. Waiting requests are
// weighted as in vLLM's choice of a data-parallel rank.
func leastLoaded(engines []*Engine) *Engine {
	return slices.MinFunc(engines, func(a, b *Engine) int {
		return 4*a.stats.Waiting + a.stats.Running - 4*b.stats.Waiting - b.stats.Running
	})
}

// find returns the engine with the request, or nil.
func (s *Server) find(id uint64) *Engine {
	for _, e := range s.engines {
		if e.live[id] != nil {
			return e
		}
	}
	return nil
}

// DeferDelivery lets the server deliver tokens late, with the times of their
// generation, which makes the simulation far faster. It is for callers that use
// these times instead of a clock. The last token of an answer is never late. Call
// DeferDelivery before the first Add.
func (s *Server) DeferDelivery() {
	for _, e := range s.engines {
		f := &e.group
		f.on = s.api.direct() && s.p.decodesAlike() && e.handOver == nil
		f.longest = noContext
		f.needs = make([]int, s.p.KV.BlockTokens)
	}
}

// decodesAlike reports whether a step treats all decoding sequences alike.
func (p *Profile) decodesAlike() bool {
	return p.Speculation.DraftTokens == 0 && !p.Priority && p.LoRA.Slots == 0 && p.Parallel.Pipeline <= 1
}

// Cancel removes a request. Nothing more is delivered for it. Cancel returns the
// times of its tokens that were generated but not delivered.
func (s *Server) Cancel(now time.Duration, id uint64) (undelivered []time.Duration) {
	e := s.find(id)
	if e == nil {
		return nil
	}
	q := e.live[id]
	e.Cancel(id)
	return append(q.member.earlier, e.takeTimes(q)...)
}

// Next returns the time of the next event.
func (s *Server) Next() (time.Duration, bool) {
	at, _, ok := s.next()
	return at, ok
}

// next returns the time of the next event and its host. The host is nil for the API
// process and for transfers, which come first among events of the same time.
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

// Advance processes all events up to now in order and calls deliver for each
// emission.
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

// DropPrefixes empties the prefix cache, except for blocks held by sequences.
func (s *Server) DropPrefixes() {
	for _, e := range s.engines {
		e.DropPrefixes()
	}
}

// Stats returns the sum of the current states of all engines.
func (s *Server) Stats() Stats {
	all := s.engines[0].Stats()
	for _, e := range s.engines[1:] {
		all = all.Plus(e.Stats())
	}
	return all
}

// Plus returns the sum of two states.
func (s Stats) Plus(o Stats) Stats {
	return Stats{
		Running: s.Running + o.Running, Waiting: s.Waiting + o.Waiting, KVBlocks: s.KVBlocks + o.KVBlocks, KVUsedBlocks: s.KVUsedBlocks + o.KVUsedBlocks,
		PrefixQueryTokens: s.PrefixQueryTokens + o.PrefixQueryTokens, PrefixHitTokens: s.PrefixHitTokens + o.PrefixHitTokens,
		Steps: s.Steps + o.Steps, PromptTokens: s.PromptTokens + o.PromptTokens, GeneratedTokens: s.GeneratedTokens + o.GeneratedTokens,
		Preemptions: s.Preemptions + o.Preemptions, Finished: s.Finished + o.Finished, Cancelled: s.Cancelled + o.Cancelled, BusyTime: s.BusyTime + o.BusyTime,
	}
}
