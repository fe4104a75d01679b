package limit

import "bytes"

// Lines cuts a stream into lines. The zero value is at the start of a stream.
type Lines struct {
	Buffer       // a line that has not ended yet
	Offset int64 // of the next piece
}

// Feed reads the next piece of the stream and calls line for each line that
// ends in it, with the offset of the newline. It returns what it has added to
// the line that has not ended.
func (l *Lines) Feed(piece []byte, line func(line []byte, end int64)) (rest []byte) {
	rest = piece
	for {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		whole := rest[:i]
		rest = rest[i+1:]
		if l.Len() > 0 {
			l.Add(whole)
			whole = l.Take()
		}
		line(whole, l.Offset+int64(len(piece)-len(rest)-1))
	}
	l.Add(rest)
	l.Offset += int64(len(piece))
	return rest
}
