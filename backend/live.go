package backend

import (
	"bytes"
	"time"
)

// An OnToken is called as token events arrive, for live figures: n of them at
// once, so long after the one before, or after the request was sent if they are
// the first of its answer. N is approximate.
type OnToken func(n int, first bool, after time.Duration)

// maxLine is how long an unfinished line may get before the live counter gives
// it up; the record is not affected.
const maxLine = 64 << 10

// A liveCounter counts token events in pieces of a stream as they arrive. It
// looks for a few byte strings and does not parse: it runs while other streams
// are being timed, and its figures are for watching, not for the record.
type liveCounter struct {
	marks   []string
	tell    OnToken
	sent    *int64 // when the request was
	last    int64  // when the latest token came; 0 is not yet
	bare    bool   // lines are payloads, with no field name in front
	partial []byte // a line that has not ended yet
	mark    string // that the last token had before it
	at      int    // where that token began in its line
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

// hasToken says whether a line has a token. The lines of a stream are alike, so
// that a look at where the last one had it is enough for most of them.
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
