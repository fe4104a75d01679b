package backend

import (
	"errors"
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

var errNotObject = errors.New("not a JSON object")

// scanObject reads payload, which must be one JSON object.
func scanObject(s *jsonscan.Scanner, payload []byte, member func(key []byte)) error {
	s.Reset(payload)
	isObject := s.Object(member)
	if err := s.Err(); err != nil {
		return err
	}
	if !isObject {
		return errNotObject
	}
	return nil
}
