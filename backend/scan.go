package backend

import (
	"time"

	"github.com/tacho-bench/tacho/internal/jsonscan"
)

// millis converts a server's milliseconds to a Duration.
func millis(ms float64) time.Duration { return duration(ms, time.Millisecond) }

// duration converts n units to a Duration. duration returns 0 for invalid values.
func duration(n float64, unit time.Duration) time.Duration {
	const longest = float64(1 << 62)
	if d := n * float64(unit); d > 0 && d < longest {
		return time.Duration(d)
	}
	return 0
}

// A scanner decodes events that are JSON objects. Any event may carry an error instead of its usual content.
type scanner struct {
	jsonscan.Scanner
	message []byte // error message of the server
}

// read calls member for each member of an event except error, which read stores in the chunk.
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
