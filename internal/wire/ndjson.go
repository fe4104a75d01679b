package wire

import (
	"bytes"
	"encoding/json"

	"github.com/tacho-bench/tacho/internal/limit"
)

// An NDJSONSplitter splits a stream into lines and emits each line as an event without a name. Empty lines are
// skipped. The zero value is ready for the start of a stream.
type NDJSONSplitter struct {
	lines  limit.Lines
	blank  bool // the incomplete line contains only white space
	broken bool // the stream ended inside a line
}

// Feed splits the next piece of the stream and calls emit for each complete line. The event is valid only during
// the call. If a line is longer than limit.Event, Feed returns an error and reads no further.
func (s *NDJSONSplitter) Feed(piece []byte, emit func(SSEEvent)) error {
	rest := s.lines.Feed(piece, func(line []byte, end int64) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			emit(SSEEvent{Data: line, End: end})
		}
	})
	s.blank = (s.blank || s.lines.Len() == len(rest)) && len(bytes.TrimSpace(rest)) == 0
	if s.lines.Len() > limit.Event {
		s.lines.Drop()
		return limit.Bytes("a line", limit.Event)
	}
	return nil
}

// Close ends the stream. If the last line is a complete JSON document, Close emits the line even without a newline.
func (s *NDJSONSplitter) Close(emit func(SSEEvent)) {
	s.broken = s.Partial()
	if line := bytes.TrimSpace(s.lines.Take()); len(line) > 0 && json.Valid(line) {
		s.broken = false
		emit(SSEEvent{Data: line, End: s.lines.Offset - 1})
	}
}

// Pending reports whether the stream, so far, contains an incomplete line, and the offset of the last byte received
// of that line.
func (s *NDJSONSplitter) Pending() (end int64, ok bool) { return s.lines.Offset - 1, s.Partial() }

// Partial reports whether the stream, so far, ends inside a line.
func (s *NDJSONSplitter) Partial() bool { return s.broken || s.lines.Len() > 0 && !s.blank }
