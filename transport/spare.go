package transport

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tacho-bench/tacho/transport/socket"
)

const (
	// spareCheckInterval is how often spares are checked, and how soon a failed dial is
	// retried.
	spareCheckInterval = time.Second
	// spareDials is the number of concurrent dials. More would fill the listen queue of a
	// busy server.
	spareDials = 16
)

// spareMaxAge is how long an unused spare is kept. If the socket shows that the peer
// closed it, the age only protects from middleboxes that forget connections. Otherwise it
// is shorter than the idle timeouts of servers.
var spareMaxAge = func() time.Duration {
	if socket.SeesClose {
		return 30 * time.Second
	}
	return 4 * time.Second
}()

// spares is a stack of unused connections.
type spares struct {
	dial  func(context.Context) (net.Conn, error)
	taken atomic.Int64 // number of spares taken

	mu    sync.Mutex
	want  int
	stack []spare

	once   sync.Once
	missed chan struct{} // signals that a spare was taken
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

// keep fills the stack to n, and from then on keeps at least least spares.
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

// take returns the youngest spare that is still open, or nil.
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
		closeAsync(sp.conn)
	}
}

func (sp spare) good(at int64) bool {
	return at-sp.since < int64(spareMaxAge) && socket.Alive(connUnder(sp.conn).Conn)
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
		// A request that must dial reports why the dial fails.
		if s.fill(s.alive) != nil {
			select {
			case <-s.alive.Done():
				return
			case <-tick.C:
			}
		}
	}
}

// dropBad checks the spares without the lock, because a request must not wait for a
// thousand system calls.
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
			closeAsync(sp.conn)
		}
		return drop
	})
}

// fill dials the missing spares and returns the first error.
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
		closeAsync(nc)
		return
	}
	s.stack = append(s.stack, spare{nc, now()})
}

// closeAsync closes nc on another goroutine, because a TLS close may block. Nothing was
// sent on a spare, so no data is lost.
func closeAsync(nc net.Conn) {
	go func() { _ = nc.Close() }()
}

func (s *spares) close() {
	s.stop()
	s.keeper.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sp := range s.stack {
		closeAsync(sp.conn)
	}
	s.stack = nil
}
