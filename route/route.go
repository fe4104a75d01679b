// Package route says which of several servers gets a request. It serves clients
// that spread their requests over real servers and fleets that are computed, so
// that a prediction chooses as the client would. It reads no clock, and is not
// safe for concurrent use.
package route

import (
	"fmt"
	"slices"
	"strings"

	"tacho"
)

// A Policy is a way to choose.
type Policy struct {
	Name string
	Doc  string
	// ByLoad says that it goes by what is in flight at the moment of sending.
	ByLoad bool
	// ByPrefix says that it looks at what a prompt begins with.
	ByPrefix bool

	choose func(r *Router, a *Ask) int
}

// Policies are all there are.
var Policies = []Policy{roundRobin, anyServer, leastLoaded, powerOfTwo, byPrefix, bySession}

// An Ask is what a policy may know of a request.
type Ask struct {
	Session uint64
	Turn    int
	Prefix  []uint64 // see Prefix; only for policies that go by it
}

// names are those of the policies.
func names() []string {
	names := make([]string, len(Policies))
	for i, p := range Policies {
		names[i] = p.Name
	}
	return names
}

// Find is the policy of that name.
func Find(name string) (Policy, error) {
	if i := slices.IndexFunc(Policies, func(p Policy) bool { return p.Name == name }); i >= 0 {
		return Policies[i], nil
	}
	return Policy{}, fmt.Errorf("%q is no way to choose a server: there are %s", name, strings.Join(names(), ", "))
}

var (
	roundRobin = Policy{Name: "round-robin", Doc: "each in turn", choose: func(r *Router, _ *Ask) int {
		r.turn++
		return r.open[(r.turn-1)%len(r.open)]
	}}
	anyServer = Policy{Name: "random", Doc: "any", choose: func(r *Router, a *Ask) int {
		return r.open[r.chance(a)%uint64(len(r.open))]
	}}
	leastLoaded = Policy{Name: "least-loaded", Doc: "the one with the fewest requests in flight", ByLoad: true, choose: func(r *Router, _ *Ask) int {
		best := r.turn % len(r.open)
		i := best
		for range r.open {
			if r.flying[r.open[i]] < r.flying[r.open[best]] {
				best = i
			}
			if i++; i == len(r.open) {
				i = 0
			}
		}
		r.turn = best + 1 // of equals not always the first
		return r.open[best]
	}}
	powerOfTwo = Policy{Name: "power-of-two", Doc: "of two drawn at random, the one with fewer requests in flight", ByLoad: true, choose: func(r *Router, a *Ask) int {
		n := uint64(len(r.open))
		if n == 1 {
			return r.open[0]
		}
		draw := r.chance(a)
		first := draw % n
		second := (first + 1 + (draw>>32)%(n-1)) % n
		if i, k := r.open[first], r.open[second]; r.flying[i] <= r.flying[k] {
			return i
		}
		return r.open[second]
	}}
	byPrefix = Policy{
		Name: "prefix", Doc: "the one that served prompts with the same beginning before, unless it has far more to do than others",
		ByLoad: true, ByPrefix: true, choose: choosePrefix,
	}
	bySession = Policy{Name: "sticky", Doc: "for all requests of a session the same one", choose: func(r *Router, a *Ask) int {
		if home, known := r.homes.get(a.Session); known && !r.closed[home] {
			return home
		}
		home := r.open[a.Session%uint64(len(r.open))]
		r.homes.put(a.Session, home)
		return home
	}}
)

// overloaded is how many more requests than the least loaded server one may have
// in flight to be still chosen for what is in its cache.
const overloaded = 16

// choosePrefix looks for the server that knows most of a prompt.
func choosePrefix(r *Router, a *Ask) int {
	least := leastLoaded.choose(r, a)
	best := least
	for _, piece := range slices.Backward(a.Prefix) {
		if home, known := r.homes.get(piece); known && !r.closed[home] {
			if r.flying[home] <= r.flying[least]+overloaded {
				best = home
			}
			break
		}
	}
	for _, piece := range a.Prefix {
		r.homes.put(piece, best)
	}
	return best
}

// A Router chooses among servers that it knows by their numbers.
type Router struct {
	policy Policy
	seed   uint64
	flying []int
	closed []bool
	open   []int // those that may be chosen
	turn   int
	homes  memory // by session, or by the beginning of a prompt
}

// New returns a router for no servers.
func New(policy Policy, seed uint64) *Router { return &Router{policy: policy, seed: seed} }

// Policy is how it chooses.
func (r *Router) Policy() Policy { return r.policy }

// Open lets server i be chosen. Numbers begin at 0.
func (r *Router) Open(i int) {
	for len(r.flying) <= i {
		r.flying, r.closed = append(r.flying, 0), append(r.closed, true)
	}
	if r.closed[i] {
		r.closed[i] = false
		at, _ := slices.BinarySearch(r.open, i)
		r.open = slices.Insert(r.open, at, i)
	}
}

// Close lets server i be chosen no more.
func (r *Router) Close(i int) {
	if !r.closed[i] {
		r.closed[i] = true
		at, _ := slices.BinarySearch(r.open, i)
		r.open = slices.Delete(r.open, at, at+1)
	}
}

// Servers is how many may be chosen.
func (r *Router) Servers() int { return len(r.open) }

// Choose is the server for a request; false: there is none.
func (r *Router) Choose(a *Ask) (server int, ok bool) {
	if len(r.open) == 0 {
		return 0, false
	}
	return r.policy.choose(r, a), true
}

// Begin notes a request in flight at server i.
func (r *Router) Begin(i int) { r.flying[i]++ }

// End notes that one is over.
func (r *Router) End(i int) { r.flying[i]-- }

// Flying is how many requests are in flight at server i.
func (r *Router) Flying(i int) int { return r.flying[i] }

// chance is a random number that depends on the request alone, so that who asks
// before it changes nothing.
func (r *Router) chance(a *Ask) uint64 {
	return mix(mix(r.seed+0x9e3779b97f4a7c15, a.Session), uint64(a.Turn))
}

// mix stirs x into a hash.
func mix(h, x uint64) uint64 {
	h ^= x
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// The sizes of a piece of a prompt.
const (
	pieceTokens = 16
	pieceBytes  = 64
)

// Prefix is a number for each piece of a prompt from its beginning: those of two
// prompts are equal as far as the prompts are.
func Prefix(in *tacho.Input) []uint64 {
	var p prefix
	for _, id := range in.IDs {
		p.add(uint64(id), pieceTokens)
	}
	p.text(in.Text)
	for i := range in.Messages {
		p.text(in.Messages[i].Content)
	}
	return p.pieces
}

type prefix struct {
	pieces []uint64
	hash   uint64
	n      int
}

func (p *prefix) add(x uint64, every int) {
	p.hash = mix(p.hash, x)
	if p.n++; p.n%every == 0 {
		p.pieces = append(p.pieces, p.hash)
	}
}

func (p *prefix) text(s string) {
	for i := range len(s) {
		p.add(uint64(s[i]), pieceBytes)
	}
}

// A memory knows what it was told lately: at least the last remembered things,
// at most twice as many.
type memory struct{ young, old map[uint64]int }

const remembered = 1 << 18

func (m *memory) get(key uint64) (int, bool) {
	if v, ok := m.young[key]; ok {
		return v, true
	}
	v, ok := m.old[key]
	return v, ok
}

func (m *memory) put(key uint64, v int) {
	if m.young == nil || len(m.young) >= remembered {
		m.young, m.old = map[uint64]int{}, m.young
	}
	m.young[key] = v
}
