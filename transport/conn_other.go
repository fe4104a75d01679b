//go:build !linux

package transport

import (
	"context"
	"net"
	"time"

	"tacho/transport/tap"
)

// spareMaxAge is how long an unused spare is kept. Nothing here tells whether
// the peer has closed it, so it is shorter than servers' idle timeouts.
const spareMaxAge = 4 * time.Second

// A kernelClock exists on Linux only.
type kernelClock struct{}

func newKernelClock() *kernelClock { return nil }

func (*kernelClock) take(net.Conn, bool) (*polled, error) { return nil, nil }

func (*kernelClock) close() {}

func (*kernelClock) stats() tap.Stats { return tap.Stats{} }

// CheckWire says that there is no wire clock.
func CheckWire(context.Context) error { return (*kernelClock)(nil).openTap(nil) }

func (*kernelClock) openTap(ports []uint16) error {
	_, err := tap.Open(tap.Config{Ports: ports})
	return err
}

// A polled exists on Linux only.
type polled struct{ net.Conn }

func (*polled) receive([]byte) (n int, at stamp, err error) { return 0, stamp{}, net.ErrClosed }

func (*polled) left(_, _ uint64) (first, last int64, ok bool) { return 0, 0, false }

func (*polled) await() int { return 0 }

type pieces struct{}

func (*polled) next() (pieces, error) { return pieces{}, net.ErrClosed }

func (*polled) each(pieces, func([]byte, stamp) bool) bool { return true }

func (*polled) done(pieces) {}

func (*polled) send([]byte) int { return 0 }

func (*polled) hide(uint32) {}

func (*polled) look() {}

func (*polled) tell(f func(whole bool)) { f(false) }

func (*polled) hurry(bool) {}

func (*polled) leftBy() int64 { return 0 }

func (*polled) troubles() (retransmits, outOfOrder int) { return 0, 0 }

func (*polled) waits() bool { return false }

func (*polled) quiet() bool { return false }

// alive says whether the peer still holds the connection open, as far as can
// be told.
func alive(net.Conn) bool { return true }

// delivered cannot be told here.
func delivered(net.Conn) (bytes int64, closed bool) { return -1, false }
