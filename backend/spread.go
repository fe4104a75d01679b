package backend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tacho"
)

// A Balance is how requests are spread over several servers.
type Balance string

// The ways to spread requests.
const (
	RoundRobin    Balance = "round-robin"     // one after the other
	AtRandom      Balance = "random"          // any, by chance
	LeastInFlight Balance = "least-in-flight" // the one with the fewest requests under way when this one is sent
	Sticky        Balance = "sticky"          // all requests of a session to one
)

// balances are all the ways.
var balances = []Balance{RoundRobin, AtRandom, LeastInFlight, Sticky}

// Spread returns a backend that sends each request to one of several servers
// and writes into the record to which, by the names given. All backends must be
// of one Kind, with the same options.
func Spread(backends []tacho.Backend, names []string, how Balance, seed uint64) (tacho.Backend, error) {
	if !slices.Contains(balances, how) {
		return nil, fmt.Errorf("cannot spread requests by %q: choose one of %s", how, joinBalances())
	}
	s := &spread{names: names, how: how, seed: seed, inFlight: make([]int, len(backends))}
	for _, b := range backends {
		c, ok := b.(*client)
		if !ok {
			return nil, fmt.Errorf("cannot spread requests over a %T", b)
		}
		s.clients = append(s.clients, c)
	}
	if len(s.clients) == 0 || len(names) != len(s.clients) {
		return nil, errors.New("spread: a name for each backend, and at least one")
	}
	return s, nil
}

func joinBalances() string {
	var all []string
	for _, b := range balances {
		all = append(all, string(b))
	}
	return strings.Join(all, ", ")
}

type spread struct {
	clients []*client
	names   []string
	how     Balance
	seed    uint64
	next    atomic.Uint64

	mu       sync.Mutex
	inFlight []int
	from     int // where to begin to look for the least
}

// Prepare implements tacho.Backend. The body is encoded once, whoever gets it.
func (s *spread) Prepare(r *tacho.Request) (tacho.Call, error) {
	first := s.clients[0]
	if err := first.accepts(&r.Input); err != nil {
		return nil, err
	}
	body, err := first.encode(&first.Options, r)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	c := &spreadCall{spread: s, chosen: s.choose(r)}
	c.calls = make([]*call, len(s.clients))
	for i, client := range s.clients {
		if c.chosen < 0 || c.chosen == i {
			if c.calls[i], err = client.address(r, body); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// choose is the server for a request; below 0 it is chosen when it is sent.
func (s *spread) choose(r *tacho.Request) int {
	n := uint64(len(s.clients))
	switch s.how {
	case LeastInFlight:
		return -1
	case Sticky:
		return int(r.Session % n)
	case AtRandom:
		return int(rand.New(rand.NewPCG(s.seed+r.Session, uint64(r.Turn))).Uint64N(n))
	default:
		return int((s.next.Add(1) - 1) % n)
	}
}

// least is the server with the fewest requests under way; of equals the next
// in turn.
func (s *spread) least() int {
	best := s.from % len(s.inFlight)
	for k := range s.inFlight {
		if i := (s.from + k) % len(s.inFlight); s.inFlight[i] < s.inFlight[best] {
			best = i
		}
	}
	s.from = best + 1
	return best
}

type spreadCall struct {
	spread *spread
	chosen int
	calls  []*call
}

func (c *spreadCall) keep() {
	for _, one := range c.calls {
		if one != nil {
			one.keep()
		}
	}
}

// Do implements tacho.Call.
func (c *spreadCall) Do(ctx context.Context, epoch time.Time, rec *tacho.Record) {
	s, i := c.spread, c.chosen
	s.mu.Lock()
	if i < 0 {
		i = s.least()
	}
	s.inFlight[i]++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.inFlight[i]--
		s.mu.Unlock()
	}()
	rec.Endpoint = s.names[i]
	c.calls[i].Do(ctx, epoch, rec)
}

// Models implements Server: all servers are taken for equal.
func (s *spread) Models(ctx context.Context) ([]Model, error) { return s.clients[0].Models(ctx) }

// CountTokens implements Server.
func (s *spread) CountTokens(ctx context.Context, in *tacho.Input) (int, error) {
	return s.clients[0].CountTokens(ctx, in)
}

// FlushCache implements Server.
func (s *spread) FlushCache(ctx context.Context) error {
	return s.each(func(c *client) error { return c.FlushCache(ctx) })
}

// Profile implements Profiler.
func (s *spread) Profile(ctx context.Context, start bool) error {
	return s.each(func(c *client) error { return c.Profile(ctx, start) })
}

func (s *spread) each(do func(*client) error) error {
	for i, c := range s.clients {
		if err := do(c); err != nil {
			return fmt.Errorf("%s: %w", s.names[i], err)
		}
	}
	return nil
}
