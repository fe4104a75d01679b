// Package tap stamps the segments of our own TCP connections as they pass the
// network device, so that the time of each byte is known even where a socket
// merges segments or its reader is late. It reads headers only. It exists on
// Linux, and needs the right to open packet sockets.
package tap

import "errors"

// ErrUnavailable is in the error of Open where there is no tap to be had: the
// system has none, or the process may not. The error tells what to do.
var ErrUnavailable = errors.New("the wire clock is not available")

// Config says what to tap.
type Config struct {
	// Ports are those of the servers. Connections to other ports are not seen.
	Ports []uint16
	// Frames is how many segments may wait to be looked at before some are
	// lost; 0 is enough for 160,000 a second and 200 ms.
	Frames int
}

// Stats count what a tap has seen since it was opened.
type Stats struct {
	Segments  int64 // with bytes, or that begin a connection
	Lost      int64 // not seen, for want of room in the ring
	Repeated  int64 // of tracked connections: brought only bytes that had been seen, so they were sent again
	Reordered int64 // likewise: came before bytes in front of theirs
}

// Since is what was counted after some earlier time.
func (s Stats) Since(then Stats) Stats {
	return Stats{s.Segments - then.Segments, s.Lost - then.Lost, s.Repeated - then.Repeated, s.Reordered - then.Reordered}
}
