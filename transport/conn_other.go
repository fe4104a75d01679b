//go:build !linux

package transport

import (
	"io"
	"net"
	"time"
)

// spareMaxAge is how long an unused spare is kept. Nothing here tells whether
// the peer has closed it, so it is shorter than servers' idle timeouts.
const spareMaxAge = 4 * time.Second

// A kernelReceiver exists on Linux only.
type kernelReceiver struct{}

func holdKernelClock() io.Closer { return nil }

func newKernelReceiver(net.Conn) *kernelReceiver { return nil }

func (*kernelReceiver) receive([]byte) (n int, at int64, err error) { return 0, 0, net.ErrClosed }

// alive says whether the peer still holds the connection open, as far as can
// be told.
func alive(net.Conn) bool { return true }
