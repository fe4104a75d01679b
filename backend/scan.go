package backend

import (
	"time"

	"tacho/internal/jsonscan"
)

// millis is a number of milliseconds as a server gives it.
func millis(ms float64) time.Duration { return duration(ms, time.Millisecond) }

// duration is a number of units of time; nonsense is none.
func duration(n float64, unit time.Duration) time.Duration {
	const longest = float64(1 << 62)
	if d := n * float64(unit); d > 0 && d < longest {
		return time.Duration(d)
	}
	return 0
}

// A scanner reads events that are JSON objects. Any of them may hold an error
// in place of what a protocol has there.
type scanner struct {
	jsonscan.Scanner
	message []byte // the server's words for the error
}

// read calls member for each member of an event but its error, which goes into
// the chunk.
func (s *scanner) read(event []byte, c *chunk, member func(key []byte)) error {
	s.message = s.message[:0]
	failed := false
	err := s.Document(event, func(key []byte) {
		if string(key) == "error" {
			s.message, failed = s.Failure(s.message[:0])
			return
		}
		member(key)
	})
	if err == nil {
		c.failed, c.message = failed, s.message
	}
	return err
}
