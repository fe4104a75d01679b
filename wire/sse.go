package wire

import (
	"bytes"

	"tacho/internal/limit"
)

// An SSEEvent is one server-sent event.
type SSEEvent struct {
	Name []byte // of the event: field; empty for most servers
	Data []byte // its data lines, joined by newlines, without trailing blanks

	// End is the offset, from the start of the stream, of the LF or CR that
	// completes the last data line. The event is known from that byte on; the
	// blank line behind it may come later and says nothing new.
	End int64
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// An SSESplitter cuts a stream into server-sent events. It yields the same events
// however the stream was cut into pieces, each with the offset at which it was
// complete, so that the caller can look up when that byte arrived. The zero value is
// ready for the start of a stream. Lines end in LF, CRLF or CR.
type SSESplitter struct {
	lines   limit.Lines
	name    []byte
	data    limit.Buffer // data lines that outlive their piece, or have to be joined
	current []byte       // the data of the event being read, if it is not in data
	owned   bool         // it is in data
	pending bool         // the event being read has a data line
	begun   bool         // the first line is over
	end     int64
}

// Feed reads the next piece of the stream and calls emit for each event that
// its blank line ends. What emit is given is valid during the call only. An
// event that passes limit.Event is an error; nothing after it is read.
func (s *SSESplitter) Feed(piece []byte, emit func(SSEEvent)) error {
	s.lines.Returns = true
	joined := s.lines.Len() > 0 // the first line has bytes of earlier pieces, in a buffer that is used again
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

// Close tells that the stream is over: an event whose data lines are complete
// counts even though its blank line never came.
func (s *SSESplitter) Close(emit func(SSEEvent)) { s.dispatch(emit) }

// Pending says whether an event has a complete data line but no blank line
// yet, and where that line ended.
func (s *SSESplitter) Pending() (end int64, ok bool) { return s.end, s.pending }

// Partial says whether the stream, so far, breaks off inside a line.
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
		// Some servers leave blanks before the newline.
		s.addData(bytes.TrimRight(value, " \t\r"))
		s.end = end
	case "event":
		s.name = append(s.name[:0], value...)
	}
	// Comments have an empty field name; id and retry are of no use here.
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

// own moves the data read so far out of the piece, which is about to go away.
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

// SSEBegin and SSEEnd stand around the data of an event without a name, for a server
// that writes its data piece by piece. The data must be one line, as JSON is.
const (
	SSEBegin = "data: "
	SSEEnd   = "\n\n"
)

// AppendSSE appends a whole event. Its data must be one line. An empty name is
// left out.
func AppendSSE(b []byte, name string, data []byte) []byte {
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	b = append(append(b, SSEBegin...), data...)
	return append(b, SSEEnd...)
}
