package wire

import (
	"bytes"
	"encoding/json"

	"tacho/internal/limit"
)

// An NDJSONSplitter cuts a stream into lines, and hands them over as events without a
// name. The zero value is ready for the start of a stream. Empty lines are
// passed over.
type NDJSONSplitter struct {
	lines  limit.Lines
	blank  bool // there is nothing but blanks in the line that has not ended
	broken bool // the stream is over, and broke off inside a line
}

// Feed reads the next piece of the stream and calls emit for each line that
// ends in it. What emit is given is valid during the call only. A line that
// passes limit.Event is an error; nothing after it is read.
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

// Close tells that the stream is over: a last line counts without its newline
// if it is a whole document.
func (s *NDJSONSplitter) Close(emit func(SSEEvent)) {
	s.broken = s.Partial()
	if line := bytes.TrimSpace(s.lines.Take()); len(line) > 0 && json.Valid(line) {
		s.broken = false
		emit(SSEEvent{Data: line, End: s.lines.Offset - 1})
	}
}

// Pending says whether a line has begun, and where what there is of it ended.
func (s *NDJSONSplitter) Pending() (end int64, ok bool) { return s.lines.Offset - 1, s.Partial() }

// Partial says whether the stream, so far, breaks off inside a line.
func (s *NDJSONSplitter) Partial() bool { return s.broken || s.lines.Len() > 0 && !s.blank }
