package transport

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// spareCheckInterval is how often spares are looked over, and how soon a
	// failed dial is tried again.
	spareCheckInterval = time.Second
	// spareDials is how many spares are dialled at a time: more would fill the
	// listen queue of a busy server.
	spareDials = 16
)

// spares is a stack of connections that nobody has used yet.
type spares struct {
	dial  func(context.Context) (net.Conn, error)
	taken atomic.Int64 // spares that requests took

	mu    sync.Mutex
	want  int
	stack []spare

	once   sync.Once
	missed chan struct{} // a spare was taken
	stop   context.CancelFunc
	alive  context.Context // ends the keeper, which outlives every call
	keeper sync.WaitGroup
}

type spare struct {
	conn  net.Conn
	since int64 // wall-clock nanoseconds
}

func newSpares(dial func(context.Context) (net.Conn, error)) *spares {
	s := &spares{dial: dial, missed: make(chan struct{}, 1)}
	s.alive, s.stop = context.WithCancel(context.Background())
	return s
}

// keep fills the stack to n, and from then on keeps at least so many of them.
func (s *spares) keep(ctx context.Context, n, least int) error {
	s.mu.Lock()
	s.want = n
	s.mu.Unlock()
	err := s.fill(ctx)
	s.mu.Lock()
	s.want = least
	s.mu.Unlock()
	s.once.Do(func() { s.keeper.Go(s.refill) })
	return err
}

// take returns the youngest spare that is still good, or nil.
func (s *spares) take() net.Conn {
	for {
		s.mu.Lock()
		top := len(s.stack) - 1
		if top < 0 {
			s.mu.Unlock()
			return nil
		}
		sp := s.stack[top]
		s.stack = s.stack[:top]
		missed := top < s.want
		s.mu.Unlock()
		if missed {
			select {
			case s.missed <- struct{}{}:
			default:
			}
		}
		if sp.good(now()) {
			s.taken.Add(1)
			return sp.conn
		}
		closeAside(sp.conn)
	}
}

func (sp spare) good(at int64) bool {
	return at-sp.since < int64(spareMaxAge) && alive(connUnder(sp.conn).Conn)
}

// refill keeps the stack full until close.
func (s *spares) refill() {
	tick := time.NewTicker(spareCheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.alive.Done():
			return
		case <-s.missed:
		case <-tick.C:
			s.dropBad()
		}
		// Why a dial failed is told by the request that has to dial for itself.
		if s.fill(s.alive) != nil {
			select {
			case <-s.alive.Done():
				return
			case <-tick.C:
			}
		}
	}
}

// dropBad looks without the lock: a request must not wait for a thousand
// system calls.
func (s *spares) dropBad() {
	s.mu.Lock()
	stack := slices.Clone(s.stack)
	s.mu.Unlock()
	at := now()
	bad := slices.DeleteFunc(stack, func(sp spare) bool { return sp.good(at) })
	if len(bad) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stack = slices.DeleteFunc(s.stack, func(sp spare) bool {
		drop := slices.Contains(bad, sp)
		if drop {
			closeAside(sp.conn)
		}
		return drop
	})
}

// fill dials what is missing and returns what went wrong first.
func (s *spares) fill(ctx context.Context) error {
	s.mu.Lock()
	missing := s.want - len(s.stack)
	s.mu.Unlock()
	if missing <= 0 {
		return nil
	}
	jobs := make(chan struct{}, missing)
	for range missing {
		jobs <- struct{}{}
	}
	close(jobs)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var dials sync.WaitGroup
	for range min(missing, spareDials) {
		dials.Go(func() {
			for range jobs {
				if ctx.Err() != nil {
					return
				}
				nc, err := s.dial(ctx)
				if err != nil {
					cancel(err)
					return
				}
				s.put(nc)
			}
		})
	}
	dials.Wait()
	return context.Cause(ctx)
}

func (s *spares) put(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive.Err() != nil || len(s.stack) >= s.want {
		closeAside(nc)
		return
	}
	s.stack = append(s.stack, spare{nc, now()})
}

// closeAside closes nc without waiting: TLS says goodbye first, which may
// block. Nothing was sent on a spare, so nothing can be lost with it.
func closeAside(nc net.Conn) {
	go func() { _ = nc.Close() }()
}

func (s *spares) close() {
	s.stop()
	s.keeper.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sp := range s.stack {
		closeAside(sp.conn)
	}
	s.stack = nil
}
