//go:build real

package proof

import (
	"net"
	"testing"

	"github.com/tacho-bench/tacho/sim"
)

// A server with a 5 ms error is detected over the kernel's network even on a
// busy machine, because a wait is never shorter than requested.
func TestRealLieIsFound(t *testing.T) {
	s, err := sim.New(liesAfter)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(liar{l, lie}) }()
	t.Cleanup(func() { _ = s.Close() })
	r, err := Run(t.Context(), "http://"+l.Addr().String(), liedTo)
	if err != nil {
		t.Fatal(err)
	}
	checkLie(t, r)
}
