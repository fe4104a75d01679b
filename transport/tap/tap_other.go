//go:build !linux

package tap

import (
	"fmt"
	"net/netip"
)

// A Tap exists on Linux only.
type Tap struct{}

// Open fails here.
func Open(Config) (*Tap, error) {
	return nil, fmt.Errorf("%w: it exists on Linux only; use --clock kernel", ErrUnavailable)
}

// Track is for Linux.
func (*Tap) Track(local, remote netip.AddrPort) *Conn { return nil }

// Stats is for Linux.
func (*Tap) Stats() Stats { return Stats{} }

// Close is for Linux.
func (*Tap) Close() {}

// A Conn exists on Linux only.
type Conn struct{ In, Out Stream }

// Release is for Linux.
func (*Conn) Release() {}

// A Stream exists on Linux only.
type Stream struct{}

// At is for Linux.
func (*Stream) At(uint64) (end uint64, at int64, ok bool) { return 0, 0, false }

// Skip is for Linux.
func (*Stream) Skip(uint64) {}

// Forget is for Linux.
func (*Stream) Forget(uint64) {}
