//go:build !linux

package sim

import "net"

// stamped is c itself: only Linux stamps what a TCP socket receives.
func stamped(c net.Conn) net.Conn { return c }
