// Package ndjson splits streams of JSON documents that end in newlines. It
// yields the same lines however the stream was cut, each with the place in the
// stream where it was complete.
package ndjson

import (
	"bytes"
	"encoding/json"

	"tacho/internal/limit"
	"tacho/wire/sse"
)

// A Splitter cuts a stream into lines, and hands them over as events without a
// name. The zero value is ready for the start of a stream. Empty lines are
// passed over.
type Splitter struct {
	offset  int64        // of the piece being read
	partial limit.Buffer // a line that has not ended yet
	blank   bool         // and there is nothing in it but blanks
	broken  bool         // the stream is over, and broke off inside a line
}

// Feed reads the next piece of the stream and calls emit for each line that
// ends in it. What emit is given is valid during the call only. A line that
// passes limit.Event is an error, behind which nothing is read.
func (s *Splitter) Feed(piece []byte, emit func(sse.Event)) error {
	rest := piece
	for {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		line := rest[:i]
		rest = rest[i+1:]
		if s.partial.Len() > 0 {
			s.partial.Add(line)
			line = s.partial.Take()
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			emit(sse.Event{Data: line, End: s.offset + int64(len(piece)-len(rest)-1)})
		}
	}
	s.blank = (s.blank || s.partial.Len() == 0) && len(bytes.TrimSpace(rest)) == 0
	s.partial.Add(rest)
	s.offset += int64(len(piece))
	if s.partial.Len() > limit.Event {
		s.partial.Drop()
		return limit.Bytes("a line", limit.Event)
	}
	return nil
}

// Close tells that the stream is over: a last line counts without its newline
// if it is a whole document.
func (s *Splitter) Close(emit func(sse.Event)) {
	s.broken = s.Partial()
	if line := bytes.TrimSpace(s.partial.Take()); len(line) > 0 && json.Valid(line) {
		s.broken = false
		emit(sse.Event{Data: line, End: s.offset - 1})
	}
}

// Pending says whether a line has begun, and where what there is of it ended.
func (s *Splitter) Pending() (end int64, ok bool) { return s.offset - 1, s.Partial() }

// Partial says whether the stream, so far, breaks off inside a line.
func (s *Splitter) Partial() bool { return s.broken || s.partial.Len() > 0 && !s.blank }
