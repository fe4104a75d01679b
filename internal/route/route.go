// Package route chooses one of several servers for each request. Clients use it to spread requests over real
// servers, and prediction uses it for virtual replicas, so a prediction chooses the same servers as the client. A
// Router reads no clock and is not safe for concurrent use.
package route

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho"
)

// A Policy is a load-balancing policy.
type Policy struct {
	Name string
	// ByLoad reports whether the choice depends on the requests in flight at the time of sending.
	ByLoad bool
	// ByPrefix reports whether the choice depends on the beginning of the prompt.
	ByPrefix bool

	choose func(r *Router, a *Request) int
}

// Policies lists all policies.
var Policies = []Policy{roundRobin, randomServer, leastLoaded, powerOfTwo, byPrefix, bySession}

// A Request holds the properties of a request a policy may use.
type Request struct {
	Session uint64
	Turn    int
	Prefix  []uint64 // see Prefix; only set if the policy uses prefixes
}

// names returns the names of all policies.
func names() []string {
	names := make([]string, len(Policies))
	for i, p := range Policies {
		names[i] = p.Name
	}
	return names
}

// Find returns the policy called name.
func Find(name string) (Policy, error) {
	if i := slices.IndexFunc(Policies, func(p Policy) bool { return p.Name == name }); i >= 0 {
		return Policies[i], nil
	}
	return Policy{}, fmt.Errorf("unknown load-balancing policy %q (have %s)", name, strings.Join(names(), ", "))
}

var (
	roundRobin = Policy{Name: "round-robin", choose: func(r *Router, _ *Request) int {
		r.turn++
		return (r.turn - 1) % len(r.inFlight)
	}}
	randomServer = Policy{Name: "random", choose: func(r *Router, a *Request) int {
		return int(r.random(a) % uint64(len(r.inFlight)))
	}}
	leastLoaded = Policy{Name: "least-loaded", ByLoad: true, choose: func(r *Router, _ *Request) int {
		best := r.turn % len(r.inFlight)
		i := best
		for range r.inFlight {
			if r.inFlight[i] < r.inFlight[best] {
				best = i
			}
			if i++; i == len(r.inFlight) {
				i = 0
			}
		}
		r.turn = best + 1 // do not always choose the first of equally loaded servers
		return best
	}}
	powerOfTwo = Policy{Name: "power-of-two", ByLoad: true, choose: func(r *Router, a *Request) int {
		n := uint64(len(r.inFlight))
		if n == 1 {
			return 0
		}
		draw := r.random(a)
		first := draw % n
		second := (first + 1 + (draw>>32)%(n-1)) % n
		if r.inFlight[first] <= r.inFlight[second] {
			return int(first)
		}
		return int(second)
	}}
	byPrefix = Policy{
		Name:   "prefix",
		ByLoad: true, ByPrefix: true, choose: choosePrefix,
	}
	bySession = Policy{Name: "sticky", choose: func(r *Router, a *Request) int {
		return int(a.Session % uint64(len(r.inFlight)))
	}}
)

// maxExtraLoad is the number of requests a server may have in flight beyond the least loaded server and still be
// chosen for its cache.
const maxExtraLoad = 16

// choosePrefix returns the server that served the longest prefix of the prompt.
func choosePrefix(r *Router, a *Request) int {
	least := leastLoaded.choose(r, a)
	best := least
	for _, piece := range slices.Backward(a.Prefix) {
		if home, known := r.assigned.get(piece); known {
			if r.inFlight[home] <= r.inFlight[least]+maxExtraLoad {
				best = home
			}
			break
		}
	}
	for _, piece := range a.Prefix {
		r.assigned.put(piece, best)
	}
	return best
}

// A Router chooses among servers identified by their numbers.
type Router struct {
	policy   Policy
	seed     uint64
	inFlight []int // requests in flight at each server
	turn     int
	assigned recentMap // server by prompt prefix
}

// New returns a router for a number of servers.
func New(policy Policy, seed uint64, servers int) *Router {
	return &Router{policy: policy, seed: seed, inFlight: make([]int, servers)}
}

// Policy returns the router's policy.
func (r *Router) Policy() Policy { return r.policy }

// Choose returns the server for a request.
func (r *Router) Choose(a *Request) int { return r.policy.choose(r, a) }

// Begin counts a request in flight at server i.
func (r *Router) Begin(i int) { r.inFlight[i]++ }

// End removes a finished request from the count of server i.
func (r *Router) End(i int) { r.inFlight[i]-- }

// random returns a random number that depends only on the request, so earlier requests do not change the choice.
func (r *Router) random(a *Request) uint64 {
	return mix(mix(r.seed+0x9e3779b97f4a7c15, a.Session), uint64(a.Turn))
}

// mix adds x to a hash.
func mix(h, x uint64) uint64 {
	h ^= x
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// Sizes of the pieces of a prompt hashed by Prefix.
const (
	pieceTokens = 16
	pieceBytes  = 64
)

// Prefix returns a hash of the prompt up to the end of each piece. Two prompts have equal hashes up to the piece in
// which they differ.
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

// A recentMap stores the recent entries: at least the last recentSize, at most twice as many.
type recentMap struct{ young, old map[uint64]int }

const recentSize = 1 << 18

func (m *recentMap) get(key uint64) (int, bool) {
	if v, ok := m.young[key]; ok {
		return v, true
	}
	v, ok := m.old[key]
	return v, ok
}

func (m *recentMap) put(key uint64, v int) {
	if m.young == nil || len(m.young) >= recentSize {
		m.young, m.old = map[uint64]int{}, m.young
	}
	m.young[key] = v
}
