// Package tap timestamps the segments of our own TCP connections at the network device. So
// the time of each byte is known even if a socket merges segments or its reader is late.
// Package tap reads headers only. It works on Linux and needs the right to open packet
// sockets.
package tap

import "errors"

// ErrUnavailable is in the error of Open if the system has no packet sockets or the
// process lacks the capability. The error message says what to do.
var ErrUnavailable = errors.New("the wire clock is not available")

// Config selects the connections to tap.
type Config struct {
	// Ports are the ports of the servers. Connections to other ports are ignored.
	Ports []uint16
	// Frames is the number of segments the ring can hold before it loses some; 0 selects a
	// size for 160,000 segments/s during 200 ms.
	Frames int
}

// Stats counts segments since the tap was opened.
type Stats struct {
	Segments  int64 // segments with bytes or a SYN
	Lost      int64 // segments lost because the ring was full
	Repeated  int64 // segments of tracked connections with known bytes only, so they were retransmitted
	Reordered int64 // segments of tracked connections that arrived before earlier bytes
}

// Since returns the difference to earlier Stats.
func (s Stats) Since(then Stats) Stats {
	return Stats{s.Segments - then.Segments, s.Lost - then.Lost, s.Repeated - then.Repeated, s.Reordered - then.Reordered}
}
