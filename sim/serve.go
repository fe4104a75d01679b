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

// Serve answers on l until l is closed or Close is called. It closes l.
// Truth.Received and connection faults require Serve; Truth.Received also requires
// a system with receive timestamps.
func (s *Server) Serve(l net.Listener) error {
	h := &http.Server{Handler: s, ConnContext: withConn, ReadHeaderTimeout: headTimeout, IdleTimeout: idleTimeout}
	// The error of Close does not matter, because the server is no longer used.
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

// simListener returns connections with receive timestamps and injects listener
// faults.
type simListener struct {
	server *Server

	mu     sync.Mutex
	inner  net.Listener
	closed bool
	reopen chan struct{} // closed when a refusing listener listens again; nil if the listener does not refuse
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
			_ = c.Close() // the server is closed
			return nil, net.ErrClosed
		}
		return timestamped(c), nil
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

// plan schedules the refuse faults.
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

// refuse stops listening for a while, because the kernel refuses connections only
// if no socket listens.
func (l *simListener) refuse(length time.Duration) error {
	l.mu.Lock()
	reopen := make(chan struct{})
	l.reopen = reopen
	addr := l.inner.Addr()
	_ = l.inner.Close() // the listener is replaced, or the server is closing
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
	l.reopen = nil // if the listener could not be reopened, Accept fails and Serve returns the error
	close(reopen)
	return err
}

// A listenerOpener opens listeners.
type listenerOpener interface {
	Listen(ctx context.Context, network, address string) (net.Listener, error)
}

// opener returns an opener on the network of l: l itself if possible, otherwise the
// kernel's.
func opener(l net.Listener) listenerOpener {
	if o, ok := l.(listenerOpener); ok {
		return o
	}
	return new(net.ListenConfig)
}

// A requestClock returns the receive time of the current request.
type requestClock interface {
	firstByte() int64 // of the first byte, in nanoseconds of the wall clock
	nextRequest()     // later bytes belong to the next request
}

type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	if clock, ok := c.(requestClock); ok {
		return context.WithValue(ctx, connKey{}, clock)
	}
	return ctx
}

// receivedAt is when the kernel received the first byte of the request, or 0.
func receivedAt(ctx context.Context) int64 {
	if clock, ok := ctx.Value(connKey{}).(requestClock); ok {
		return clock.firstByte()
	}
	return 0
}
