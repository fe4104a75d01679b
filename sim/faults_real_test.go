//go:build real

package sim

import (
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

// During a refuse fault the kernel refuses connections; afterwards it accepts them
// again.
func TestRealRefuse(t *testing.T) {
	const tries = 10
	for range tries {
		if refusedAndAccepted(t) {
			return
		}
	}
	t.Errorf("in each of %d tries another process got the port", tries)
}

// refusedAndAccepted waits until a server refuses and then accepts. It returns
// false if the server ended because another process took its port meanwhile.
func refusedAndAccepted(t *testing.T) bool {
	t.Helper()
	s := must.Get(New(Options{Faults: []string{"refuse@0s+300ms/600ms"}}))(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	url := "http://" + l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	refused := false
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		select {
		case <-served:
			_ = s.Close()
			return false
		default:
		}
		switch o := talk(t, c, url, ""); o.Failure {
		case "refused":
			refused = true
		case "reset", "timeout": // the connection arrived while the socket was closed, or the machine stalled
		case "":
			if refused {
				if err := errors.Join(s.Close(), <-served); err != nil {
					t.Error(err)
				}
				return true
			}
		default:
			t.Fatalf("failure %q", o.Failure)
		}
	}
	t.Fatalf("in two minutes it refused: %v, and then did not accept", refused)
	return false
}
