package limit

import "bytes"

// Lines splits a stream into lines. The zero value is ready for the start of a stream.
type Lines struct {
	Buffer        // the incomplete last line
	Offset  int64 // stream offset of the next piece
	Returns bool  // CR and CRLF also end a line
	skip    bool  // the last byte was a CR: skip an LF after the CR
}

// Feed splits the next piece of the stream and calls line for each complete line. end is the stream offset of the
// byte that ended the line; for CRLF with Returns set, end is the offset of the CR. Feed returns the bytes added to
// the incomplete line.
func (l *Lines) Feed(piece []byte, line func(line []byte, end int64)) (rest []byte) {
	start, newline := 0, bytes.IndexByte(piece, '\n')
	for start < len(piece) {
		if newline >= 0 && newline < start {
			if newline = bytes.IndexByte(piece[start:], '\n'); newline >= 0 {
				newline += start
			}
		}
		if l.skip {
			l.skip = false
			if newline == start {
				start++
				continue
			}
		}
		end := l.end(piece, start, newline)
		if end < 0 {
			break
		}
		whole := piece[start:end]
		if l.Len() > 0 {
			l.Add(whole)
			whole = l.Take()
		}
		line(whole, l.Offset+int64(end))
		start, l.skip = end+1, piece[end] == '\r'
	}
	rest = piece[start:]
	l.Add(rest)
	l.Offset += int64(len(piece))
	return rest
}

// end returns the index in piece of the byte that ends the line starting at start, or -1 if the piece does not
// contain the end. newline is the index of the next LF, or -1.
func (l *Lines) end(piece []byte, start, newline int) int {
	if !l.Returns {
		return newline
	}
	until := piece[start:]
	if newline >= 0 {
		until = piece[start:newline]
	}
	if i := bytes.IndexByte(until, '\r'); i >= 0 {
		return start + i
	}
	return newline
}
