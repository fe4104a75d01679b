//go:build real

package proof

import (
	"net"
	"testing"

	"tacho/sim"
)

// A server that is 5 ms off the truth is found out over the kernel's network, too,
// however busy the machine is: a wait is never shorter than it was asked to be.
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
