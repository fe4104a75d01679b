package transport

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
)

// A gate opens once, or stays shut with an error.
type gate struct {
	reached chan struct{}
	opens   chan error
	open    bool
}

func (g *gate) Pass(write func()) error {
	if !g.open {
		close(g.reached)
		if err := <-g.opens; err != nil {
			return err
		}
		g.open = true
	}
	write()
	return nil
}

// A request that waits at its gate sends nothing and dials no connection. It is
// sent completely once the gate opens.
func TestRequestsWaitAtTheGate(t *testing.T) {
	const opened = "the gate opens"
	for _, tt := range []struct {
		name  string
		tls   bool
		warm  int
		size  int
		clock tacho.Clock
		shut  error
	}{
		{name: "warm", warm: 1},
		{name: "cold"},
		{name: "TLS", tls: true},
		{name: "clock of the read", warm: 1, clock: tacho.ReadClock},
		{name: "more than goes at once", warm: 1, size: 8 << 20},
		{name: "shut", warm: 1, shut: errors.New("not today")},
		{name: "shut, cold", shut: errors.New("not today")},
		{name: "shut, TLS", tls: true, shut: errors.New("not today")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var conns, requests atomic.Int64
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				n, _ := io.Copy(io.Discard, r.Body)
				if n != int64(tt.size) {
					t.Errorf("%d bytes of %d", n, tt.size)
				}
			}))
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					conns.Add(1)
				}
			}
			o := Options{Clock: tt.clock}
			if tt.tls {
				s.StartTLS()
				o.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig
			} else {
				s.Start()
			}
			defer s.Close()
			o.BaseURL = s.URL
			c := newClient(t, o)
			must.Do(t, c.Warm(t.Context(), tt.warm, 0))
			g := &gate{reached: make(chan struct{}), opens: make(chan error)}
			req := ready(t, c, "POST", "/", strings.Repeat("x", tt.size))
			x := Exchange{Options: tacho.CallOptions{Gate: g.Pass}}
			done := make(chan error)
			go func() { done <- c.Do(t.Context(), req, &x, nil, nil) }()
			<-g.reached
			if dials := c.dialer.dials.Load(); dials != int64(tt.warm) || requests.Load() != 0 {
				t.Errorf("before %s: %d connections, %d requests", opened, dials, requests.Load())
			}
			began := now()
			g.opens <- tt.shut
			if err := <-done; !errors.Is(err, tt.shut) {
				t.Fatalf("%v, want %v", err, tt.shut)
			}
			if tt.shut != nil {
				if requests.Load() != 0 {
					t.Error("it was sent all the same")
				}
				return
			}
			if requests.Load() != 1 || x.Conn < began || x.Sent < x.Conn || x.Wrote < x.Sent {
				t.Errorf("%d requests; after %s at %d: %+v", requests.Load(), opened, began, x)
			}
		})
	}
}
