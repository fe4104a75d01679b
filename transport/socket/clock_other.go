//go:build !linux

package socket

import (
	"context"
	"net"

	"github.com/tacho-bench/tacho/transport/socket/tap"
)

// SeesClose is false: a connection closed by the peer is not detected.
const SeesClose = false

// Clock exists on Linux only.
type Clock struct{}

// NewClock returns nil, because the kernel's times are read on Linux only.
func NewClock() *Clock { return nil }

// Take is for Linux.
func (*Clock) Take(net.Conn, bool) (Conn, error) { return nil, nil }

// Close is for Linux.
func (*Clock) Close() {}

// Stats is for Linux.
func (*Clock) Stats() Stats { return Stats{} }

// OpenTap fails with ErrNoWire.
func (*Clock) OpenTap(ports []uint16) error {
	_, err := tap.Open(tap.Config{Ports: ports})
	return err
}

// CheckWire fails with ErrNoWire.
func CheckWire(context.Context) error { return (*Clock)(nil).OpenTap(nil) }

// Alive is always true, because a connection closed by the peer is not detected.
func Alive(net.Conn) bool { return true }

// Delivered returns -1, because the number of acknowledged bytes is unknown.
func Delivered(net.Conn) (bytes int64, closed bool) { return -1, false }
