package limit

import "bytes"

// Lines cuts a stream into lines. The zero value is at the start of a stream.
type Lines struct {
	Buffer        // a line that has not ended yet
	Offset  int64 // of the next piece
	Returns bool  // CR and CRLF end a line, too
	skip    bool  // the last byte was a CR that ended a line: an LF belongs to it
}

// Feed reads the next piece of the stream and calls line for each line that
// ends in it, with the offset of the byte that ended it: of CRLF the CR, if Returns is
// set. It returns what it has added to the line that has not ended.
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

// end is where the line ends that begins at start, if the next newline is there;
// negative if the piece does not have its end.
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
