//go:build !linux

package tap

import (
	"fmt"
	"net/netip"
)

// Tap exists on Linux only.
type Tap struct{}

// Open fails with ErrUnavailable.
func Open(Config) (*Tap, error) {
	return nil, fmt.Errorf("%w on this system, only on Linux; use --clock kernel", ErrUnavailable)
}

// Track returns nil, because Tap exists on Linux only.
func (*Tap) Track(local, remote netip.AddrPort) *Conn { return nil }

// Stats returns no counts, because Tap exists on Linux only.
func (*Tap) Stats() Stats { return Stats{} }

// Close does nothing, because Tap exists on Linux only.
func (*Tap) Close() {}

// Conn exists on Linux only.
type Conn struct{ In, Out Stream }

// Release does nothing, because Conn exists on Linux only.
func (*Conn) Release() {}

// Stream exists on Linux only.
type Stream struct{}

// At returns no time, because Stream exists on Linux only.
func (*Stream) At(uint64) (end uint64, at int64, ok bool) { return 0, 0, false }

// Skip does nothing, because Stream exists on Linux only.
func (*Stream) Skip(uint64) {}

// Forget does nothing, because Stream exists on Linux only.
func (*Stream) Forget(uint64) {}
