package backend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/route"
)

// Spread returns a backend that distributes requests over several servers and records the name of the chosen
// server. All backends must be of the same Kind, with the same options.
func Spread(backends []tacho.Backend, names []string, how route.Policy, seed uint64) (tacho.Backend, error) {
	s := &spread{names: names, router: route.New(how, seed, len(backends))}
	for _, b := range backends {
		c, ok := b.(*client)
		if !ok {
			return nil, fmt.Errorf("cannot spread requests over a %T", b)
		}
		s.clients = append(s.clients, c)
	}
	if len(s.clients) == 0 || len(names) != len(s.clients) {
		return nil, errors.New("spread: need at least one backend, and a name for each")
	}
	return s, nil
}

type spread struct {
	clients []*client
	names   []string

	mu     sync.Mutex
	router *route.Router
}

// Prepare implements tacho.Backend. The body is the same for all servers, so Prepare encodes the body once.
func (s *spread) Prepare(r *tacho.Request) (tacho.Call, error) {
	first := s.clients[0]
	if err := first.accepts(&r.Input); err != nil {
		return nil, err
	}
	body, err := first.encode(&first.Options, r)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	c := &spreadCall{spread: s, chosen: -1, ask: route.Request{Session: r.Session, Turn: r.Turn}}
	how := s.router.Policy()
	if how.ByPrefix {
		c.ask.Prefix = route.Prefix(&r.Input)
	}
	if !how.ByLoad {
		s.mu.Lock()
		c.chosen = s.router.Choose(&c.ask)
		s.mu.Unlock()
	}
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

type spreadCall struct {
	spread *spread
	ask    route.Request
	chosen int // negative until the server is chosen at send time
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
func (c *spreadCall) Do(ctx context.Context, epoch time.Time, rec *tacho.Record, o tacho.CallOptions) {
	s, i := c.spread, c.chosen
	s.mu.Lock()
	if i < 0 {
		i = s.router.Choose(&c.ask)
	}
	s.router.Begin(i)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.router.End(i)
		s.mu.Unlock()
	}()
	rec.Endpoint = s.names[i]
	c.calls[i].Do(ctx, epoch, rec, o)
}

// Models implements Server. All servers are assumed to be equal.
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
