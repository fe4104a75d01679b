//go:build real

package proof

import (
	"net"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim"
)

// A server with a 5 ms error is detected over the kernel's network even on a
// busy machine, because a wait is never shorter than requested.
func TestRealLieIsFound(t *testing.T) {
	s := must.Get(sim.New(liesAfter))(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	go func() { _ = s.Serve(liar{l, lie}) }()
	t.Cleanup(func() { _ = s.Close() })
	r := must.Get(Run(t.Context(), "http://"+l.Addr().String(), liedTo))(t)
	checkLie(t, r)
}
