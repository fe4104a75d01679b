package predict

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"tacho/sim/step"
)

// A Router chooses the replica for a request.
type Router struct {
	Name   string
	Doc    string
	choose func(f *Fleet, r *step.Request) int
}

// Routers are all there are.
var Routers = []Router{roundRobin, anyReplica, leastLoaded, powerOfTwo, byPrefix, bySession}

var (
	roundRobin = Router{"round-robin", "each in turn", func(f *Fleet, _ *step.Request) int {
		f.turn++
		return (f.turn - 1) % len(f.replicas)
	}}
	anyReplica = Router{"random", "any", func(f *Fleet, _ *step.Request) int { return f.rng.IntN(len(f.replicas)) }}

	leastLoaded = Router{"least-loaded", "the one with the fewest requests in flight", func(f *Fleet, _ *step.Request) int {
		f.turn++ // of equals not always the first
		best := f.turn % len(f.replicas)
		for i := range f.replicas {
			if f.replicas[i].flying < f.replicas[best].flying {
				best = i
			}
		}
		return best
	}}
	powerOfTwo = Router{"power-of-two", "of two drawn at random the one with fewer requests in flight", func(f *Fleet, _ *step.Request) int {
		a, b := f.rng.IntN(len(f.replicas)), f.rng.IntN(len(f.replicas))
		if f.replicas[b].flying < f.replicas[a].flying {
			return b
		}
		return a
	}}
	byPrefix = Router{"prefix", "the one that served prompts with the same beginning before, unless it has far more to do than others; else the least loaded", choosePrefix}

	bySession = Router{"sticky", "all requests of a session to the same one; a new session to the least loaded", func(f *Fleet, r *step.Request) int {
		if i, known := f.homes[r.Session]; known {
			return i
		}
		i := leastLoaded.choose(f, r)
		f.homes[r.Session] = i
		return i
	}}
)

// overloaded is how many more requests than the least loaded replica one may have
// in flight to be still chosen for what is in its cache.
const overloaded = 16

// choosePrefix looks for the replica that knows most of a prompt.
func choosePrefix(f *Fleet, r *step.Request) int {
	least := leastLoaded.choose(f, r)
	best := least
	blocks := r.Blocks[:min(len(r.Blocks), r.Prompt/max(f.BlockTokens, 1))]
	for _, b := range slices.Backward(blocks) {
		if home, known := f.homes[b]; known {
			if f.replicas[home].flying <= f.replicas[least].flying+overloaded {
				best = home
			}
			break
		}
	}
	for _, b := range blocks {
		f.homes[b] = best
	}
	return best
}

// FindRouter is the router of that name.
func FindRouter(name string) (Router, error) {
	if i := slices.IndexFunc(Routers, func(r Router) bool { return r.Name == name }); i >= 0 {
		return Routers[i], nil
	}
	names := make([]string, len(Routers))
	for i, r := range Routers {
		names[i] = r.Name
	}
	return Router{}, fmt.Errorf("no router %q: there are %s", name, strings.Join(names, ", "))
}

// A Fleet is several replicas of a server behind a router.
type Fleet struct {
	BlockTokens int // tokens in a KV block

	replicas []replica
	router   Router
	rng      *rand.Rand
	turn     int
	homes    map[uint64]int // by session, or by the hash of a block
	where    map[uint64]int // requests in flight
	next     int            // the replica with something to do first; -1 is none
}

type replica struct {
	server *step.Server
	flying int
	at     time.Duration // when something happens next
	busy   bool
}

// NewFleet returns n idle replicas. Each draws its own random numbers.
func NewFleet(p step.Profile, n int, router Router, seed uint64) (*Fleet, error) {
	f := &Fleet{
		BlockTokens: p.KV.BlockTokens, replicas: make([]replica, n), router: router, next: -1,
		rng: rand.New(rand.NewPCG(seed, 1)), homes: map[uint64]int{}, where: map[uint64]int{},
	}
	for i := range f.replicas {
		s, err := step.NewServer(p, seed+uint64(i))
		if err != nil {
			return nil, err
		}
		s.TellLate()
		f.replicas[i].server = s
	}
	return f, nil
}

// Add implements Server.
func (f *Fleet) Add(now time.Duration, r *step.Request) error {
	i := f.router.choose(f, r)
	if err := f.replicas[i].server.Add(now, r); err != nil {
		return err
	}
	f.replicas[i].flying++
	f.where[r.ID] = i
	f.look(i)
	return nil
}

// Cancel implements Server.
func (f *Fleet) Cancel(id uint64) (untold []time.Duration) {
	i, ok := f.where[id]
	if !ok {
		return nil
	}
	f.land(i, id)
	untold = f.replicas[i].server.Cancel(id)
	f.look(i)
	return untold
}

func (f *Fleet) land(i int, id uint64) {
	f.replicas[i].flying--
	delete(f.where, id)
}

// look sees when something happens next at replica i.
func (f *Fleet) look(i int) {
	r := &f.replicas[i]
	r.at, r.busy = r.server.Next()
	f.next = -1
	for k := range f.replicas {
		if x := &f.replicas[k]; x.busy && (f.next < 0 || x.at < f.replicas[f.next].at) {
			f.next = k
		}
	}
}

// Next implements Server.
func (f *Fleet) Next() (time.Duration, bool) {
	if f.next < 0 {
		return 0, false
	}
	return f.replicas[f.next].at, true
}

// Advance implements Server.
func (f *Fleet) Advance(now time.Duration, deliver func(*step.Emission)) {
	for f.next >= 0 && f.replicas[f.next].at <= now {
		i := f.next
		f.replicas[i].server.Advance(f.replicas[i].at, func(e *step.Emission) {
			if e.Last {
				f.land(i, e.ID)
			}
			deliver(e)
		})
		f.look(i)
	}
}
