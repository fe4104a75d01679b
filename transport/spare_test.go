package transport

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/transport/socket"
)

func (s *spares) ready() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.stack)
}

func TestSparesAreTakenAndReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := memnet.Listen()
		release := make(chan struct{})
		s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })}
		go s.Serve(ln)
		defer s.Close()
		c := newClient(t, Options{BaseURL: "http://mem", Dial: ln.Dial})
		must.Do(t, c.Warm(t.Context(), 3, 3))
		if got := c.dialer.dials.Load(); got != 3 {
			t.Fatalf("%d dials, want 3", got)
		}
		var wg sync.WaitGroup
		for range 2 { // concurrently, so that neither reuses the other's connection
			wg.Go(func() {
				if x, _ := mustPost(t, c, ""); x.Reused || x.Conns != 1 {
					t.Errorf("%+v, want an unused connection", x)
				}
			})
		}
		synctest.Wait()
		if dials, taken, ready := c.dialer.dials.Load(), c.spares.taken.Load(), c.spares.ready(); dials != 5 || taken != 2 || ready != 3 {
			t.Errorf("%d dials, %d spares taken, %d ready; want 5, 2 and 3", dials, taken, ready)
		}
		close(release)
		wg.Wait()
		time.Sleep(spareMaxAge + 2*spareCheckInterval)
		if dials, ready := c.dialer.dials.Load(), c.spares.ready(); dials != 8 || ready != 3 {
			t.Errorf("%d dials and %d spares ready, want the three old ones replaced", dials, ready)
		}
		c.Close()
		synctest.Wait()
		if got := c.spares.ready(); got != 0 {
			t.Errorf("%d spares after Close", got)
		}
	})
}

func TestWarmTellsWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("no route")
		var fail atomic.Bool
		fail.Store(true)
		c := newClient(t, Options{BaseURL: "http://mem", Dial: func(context.Context, string, string) (net.Conn, error) {
			if fail.Load() {
				return nil, broken
			}
			nc, far := net.Pipe()
			t.Cleanup(func() { far.Close() })
			return nc, nil
		}})
		if err := c.Warm(t.Context(), 2, 2); !errors.Is(err, broken) {
			t.Errorf("Warm: %v, want %v", err, broken)
		}
		synctest.Wait()
		fail.Store(false)
		time.Sleep(3 * spareCheckInterval)
		if got := c.spares.ready(); got != 2 {
			t.Errorf("%d spares after the network came back, want 2", got)
		}
	})
}

// A spare that the server closed is not used.
func TestClosedSparesAreNotUsed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing tells here")
	}
	var mu sync.Mutex
	var held []net.Conn
	accepted := make(chan struct{}, 16)
	addr := rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		mu.Lock()
		held = append(held, nc)
		mu.Unlock()
		accepted <- struct{}{}
		if readHead(r) == nil {
			io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
			readHead(r)
		}
	})
	c := newClient(t, Options{BaseURL: "http://" + addr})
	must.Do(t, c.spares.keep(t.Context(), 3, 3))
	for range 3 {
		<-accepted
	}
	c.spares.mu.Lock()
	c.spares.want = 0 // prevents refills
	c.spares.mu.Unlock()
	mu.Lock()
	for _, nc := range held {
		nc.Close()
	}
	mu.Unlock()
	waitUntil(t, "all spares are closed", func() bool {
		c.spares.mu.Lock()
		defer c.spares.mu.Unlock()
		return !slices.ContainsFunc(c.spares.stack, func(sp spare) bool { return socket.Alive(connUnder(sp.conn).Conn) })
	})
	if x, _ := mustPost(t, c, ""); x.Conns != 1 || c.spares.taken.Load() != 0 {
		t.Errorf("%+v with %d spares taken, want a fresh connection", x, c.spares.taken.Load())
	}
}
