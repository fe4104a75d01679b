package wire

import (
	"bytes"

	"github.com/tacho-bench/tacho/internal/limit"
)

// An SSEEvent is one server-sent event.
type SSEEvent struct {
	Name []byte // value of the event field; most servers send none
	Data []byte // data lines joined by newlines, without trailing white space

	// End is the stream offset of the LF or CR that completes the last data line. The event is complete at this
	// byte; the blank line after it may arrive later and adds no information.
	End int64
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// An SSESplitter splits a stream into server-sent events. The events do not depend on how the stream is cut into
// pieces. Each event includes the offset of the byte that completed it, so the caller can look up the arrival time
// of the byte. Lines end in LF, CRLF or CR. The zero value is ready for the start of a stream.
type SSESplitter struct {
	lines   limit.Lines
	name    []byte
	data    limit.Buffer // data lines to join, or to keep beyond the current piece
	current []byte       // data of the current event, unless owned
	owned   bool         // the data of the current event is in data
	pending bool         // the current event contains a data line
	begun   bool         // the first line is complete
	end     int64
}

// Feed splits the next piece of the stream and calls emit for each event completed by a blank line. The event is
// valid only during the call. If an event is longer than limit.Event, Feed returns an error and reads no further.
func (s *SSESplitter) Feed(piece []byte, emit func(SSEEvent)) error {
	s.lines.Returns = true
	joined := s.lines.Len() > 0 // the first line starts in an earlier piece, and its buffer is reused
	s.lines.Feed(piece, func(line []byte, end int64) {
		s.line(line, end, emit)
		if joined {
			s.own()
			joined = false
		}
	})
	s.own()
	if s.lines.Len()+s.data.Len()+len(s.name) > limit.Event {
		s.lines.Drop()
		s.data.Drop()
		s.pending = false
		return limit.Bytes("an event", limit.Event)
	}
	return nil
}

// Close ends the stream. If the data lines of the last event are complete, Close emits the event even without a
// blank line.
func (s *SSESplitter) Close(emit func(SSEEvent)) { s.dispatch(emit) }

// Pending reports whether the current event contains a complete data line but no blank line yet, and the offset of
// the end of that line.
func (s *SSESplitter) Pending() (end int64, ok bool) { return s.end, s.pending }

// Partial reports whether the stream, so far, ends inside a line.
func (s *SSESplitter) Partial() bool { return s.lines.Len() > 0 }

func (s *SSESplitter) line(line []byte, end int64, emit func(SSEEvent)) {
	if !s.begun {
		s.begun = true
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	if len(line) == 0 {
		s.dispatch(emit)
		return
	}
	field, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(field) {
	case "data":
		// Some servers send white space before the newline.
		s.addData(bytes.TrimRight(value, " \t\r"))
		s.end = end
	case "event":
		s.name = append(s.name[:0], value...)
	}
	// Ignore comments, which have an empty field name, and the fields id and retry.
}

func (s *SSESplitter) addData(value []byte) {
	if !s.pending {
		s.current, s.owned, s.pending = value, false, true
		return
	}
	s.own()
	s.data.Add([]byte{'\n'})
	s.data.Add(value)
}

// own copies the data read so far, because the piece is valid only during Feed.
func (s *SSESplitter) own() {
	if s.pending && !s.owned {
		s.data.Add(s.current)
		s.current, s.owned = nil, true
	}
}

func (s *SSESplitter) dispatch(emit func(SSEEvent)) {
	if s.owned {
		s.current = s.data.Take()
	}
	if s.pending {
		emit(SSEEvent{Name: s.name, Data: s.current, End: s.end})
	}
	s.name, s.current, s.owned, s.pending = s.name[:0], nil, false, false
}

// SSEBegin and SSEEnd enclose the data of an event without a name, for servers that write the data in several
// steps. The data must be a single line, for example JSON.
const (
	SSEBegin = "data: "
	SSEEnd   = "\n\n"
)

// AppendSSE appends a complete event to b. The data must be a single line. An empty name is omitted.
func AppendSSE(b []byte, name string, data []byte) []byte {
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	b = append(append(b, SSEBegin...), data...)
	return append(b, SSEEnd...)
}
