package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Serve answers on l until l is closed or Close is called; it closes l. Only
// through Serve is there a Truth.Received, on systems that stamp what they
// receive, and only here can faults happen to connections.
func (s *Server) Serve(l net.Listener) error {
	h := &http.Server{Handler: s, ConnContext: withConn, ReadHeaderTimeout: headPatience, IdleTimeout: idlePatience}
	// An error of closing does not matter: nobody uses the server any more.
	defer context.AfterFunc(s.open, func() { _ = h.Close() })()
	sl := &simListener{server: s, inner: l}
	if err := sl.plan(); err != nil {
		return fmt.Errorf("serve the simulator: %w", err)
	}
	if err := h.Serve(sl); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve the simulator: %w", err)
	}
	return nil
}

// simListener makes connections that know when the kernel received what they
// read, and has the faults of a listener.
type simListener struct {
	server *Server

	mu     sync.Mutex
	inner  net.Listener
	closed bool
	reopen chan struct{} // closed when a listener that refuses listens again; nil when it does not refuse
}

// Accept implements net.Listener.
func (l *simListener) Accept() (net.Conn, error) {
	for {
		l.mu.Lock()
		inner, reopen := l.inner, l.reopen
		l.mu.Unlock()
		if reopen != nil {
			select {
			case <-reopen:
				continue
			case <-l.server.open.Done():
				return nil, net.ErrClosed
			}
		}
		c, err := inner.Accept()
		if err != nil {
			if l.refusing() {
				continue
			}
			return nil, err
		}
		fx := l.server.faults.accepting(l.server.sinceStart(time.Now()))
		if fx.slowAccept > 0 && stall(l.server.open, fx.slowAccept) != nil {
			_ = c.Close() // nobody is left to serve it
			return nil, net.ErrClosed
		}
		return stamped(c), nil
	}
}

func (l *simListener) refusing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reopen != nil
}

// Close implements net.Listener.
func (l *simListener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.inner.Close()
}

// Addr implements net.Listener.
func (l *simListener) Addr() net.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inner.Addr()
}

// plan makes the listener deaf when the faults say so.
func (l *simListener) plan() error {
	s := l.server
	for i := range s.faults.faults {
		f := &s.faults.faults[i]
		if f.name != "refuse" {
			continue
		}
		if _, ok := l.inner.Addr().(*net.TCPAddr); !ok {
			return fmt.Errorf("fault refuse: only a TCP listener can refuse, not %s", l.inner.Addr().Network())
		}
		s.schedule(f, func() error { return l.refuse(f.length) })
	}
	return nil
}

// refuse stops listening for a while: only without a listening socket does
// the kernel refuse.
func (l *simListener) refuse(length time.Duration) error {
	l.mu.Lock()
	reopen := make(chan struct{})
	l.reopen = reopen
	addr := l.inner.Addr()
	_ = l.inner.Close() // it is replaced, or the server is closing
	l.mu.Unlock()
	err := stall(l.server.open, length)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && !l.closed {
		var again net.Listener
		if again, err = opener(l.inner).Listen(l.server.open, addr.Network(), addr.String()); err == nil {
			l.inner = again
		}
	}
	l.reopen = nil // an Accept on a listener that could not be reopened fails, and Serve says why
	close(reopen)
	return err
}

// A listenerOpener opens listeners.
type listenerOpener interface {
	Listen(ctx context.Context, network, address string) (net.Listener, error)
}

// opener opens another listener on the network that l is on: that of the kernel,
// unless l itself can.
func opener(l net.Listener) listenerOpener {
	if o, ok := l.(listenerOpener); ok {
		return o
	}
	return new(net.ListenConfig)
}

// A requestClock tells when the first byte of the request being handled came.
type requestClock interface {
	firstByte() int64 // nanoseconds of the wall clock
	nextRequest()     // what comes from now on belongs to another request
}

type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	if clock, ok := c.(requestClock); ok {
		return context.WithValue(ctx, connKey{}, clock)
	}
	return ctx
}

// receivedAt is when the kernel had the first byte of the request, or 0.
func receivedAt(ctx context.Context) int64 {
	if clock, ok := ctx.Value(connKey{}).(requestClock); ok {
		return clock.firstByte()
	}
	return 0
}
