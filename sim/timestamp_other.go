//go:build !linux

package sim

import "net"

// timestamped returns c, because only Linux timestamps the data received on TCP
// sockets.
func timestamped(c net.Conn) net.Conn { return c }
