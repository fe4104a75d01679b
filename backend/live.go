package backend

import (
	"bytes"
	"time"
)

// OnToken is called for live metrics when token events arrive. n is the approximate number of events arriving
// together. after is the time since the previous token event or, if first is set, since the request was sent.
type OnToken func(n int, first bool, after time.Duration)

// maxLine is the length of an unfinished line above which the live counter discards the line. Records are not
// affected.
const maxLine = 64 << 10

// A liveCounter counts token events as they arrive. It searches for a few byte strings instead of parsing, because
// it runs while other streams are being timed. The counts are for the live display, not for records.
type liveCounter struct {
	marks   []string
	tell    OnToken
	sent    *int64 // send time of the request
	last    int64  // arrival of the latest token; 0 before the first
	bare    bool   // lines are payloads without a field name
	partial []byte // an incomplete line
	mark    string // byte string before the last token
	at      int    // offset of the last token in its line
}

func (l *liveCounter) feed(piece []byte, at int64) {
	n := 0
	for {
		i := bytes.IndexByte(piece, '\n')
		if i < 0 {
			break
		}
		line := piece[:i]
		piece = piece[i+1:]
		if len(l.partial) > 0 {
			l.partial = append(l.partial, line...)
			line, l.partial = l.partial, l.partial[:0]
		}
		if l.hasToken(line) {
			n++
		}
	}
	if len(piece) > 0 && len(l.partial)+len(piece) <= maxLine {
		l.partial = append(l.partial, piece...)
	}
	if n == 0 {
		return
	}
	first, since := l.last == 0, l.last
	if first {
		since = *l.sent
	}
	l.last = at
	l.tell(n, first, time.Duration(at-since))
}

// hasToken reports whether a line contains a token. Most lines of a stream have the token at the same offset, so
// hasToken first checks the offset of the previous token.
func (l *liveCounter) hasToken(line []byte) bool {
	if !l.bare && !bytes.HasPrefix(line, []byte("data:")) {
		return false
	}
	if l.at > 0 && l.at < len(line) && line[l.at] != '"' && bytes.HasSuffix(line[:l.at], []byte(l.mark)) {
		return true
	}
	for _, mark := range l.marks {
		for at := 0; ; {
			i := bytes.Index(line[at:], []byte(mark))
			if i < 0 {
				break
			}
			at += i + len(mark)
			if at < len(line) && line[at] != '"' {
				l.at, l.mark = at, mark
				return true
			}
		}
	}
	return false
}
