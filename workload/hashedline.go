package workload

import (
	"bytes"
	"strconv"
)

// A hashedScanner reads the usual form of a line of Mooncake's and Bailian's
// traces: one object of plain numbers, plain strings and a list of numbers. It
// is some ten times faster than a parser of all JSON, and takes nothing that
// such a parser would read otherwise: where it is not sure it says so.
type hashedScanner struct {
	line  []byte
	at    int
	brief bool // hash ids are only counted
}

// scanHashed reads a line; false leaves it to the parser of all JSON.
func scanHashed(line []byte, brief bool) (l hashedFields, ok bool) {
	s := hashedScanner{line: line, brief: brief}
	if !s.token('{') {
		return l, false
	}
	if s.token('}') {
		return l, s.done()
	}
	for {
		key, ok := s.text()
		if !ok || !s.token(':') || !s.member(string(key), &l) {
			return l, false
		}
		if s.token(',') {
			continue
		}
		return l, s.token('}') && s.done()
	}
}

func (s *hashedScanner) space() {
	for s.at < len(s.line) && (s.line[s.at] == ' ' || s.line[s.at] == '\t' || s.line[s.at] == '\r' || s.line[s.at] == '\n') {
		s.at++
	}
}

// token takes one sign, if it is the next.
func (s *hashedScanner) token(c byte) bool {
	s.space()
	if s.at < len(s.line) && s.line[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *hashedScanner) done() bool {
	s.space()
	return s.at == len(s.line)
}

// text takes a string of ASCII without escapes.
func (s *hashedScanner) text() ([]byte, bool) {
	if !s.token('"') {
		return nil, false
	}
	n := bytes.IndexByte(s.line[s.at:], '"')
	if n < 0 {
		return nil, false
	}
	out := s.line[s.at : s.at+n]
	for _, c := range out {
		if c < ' ' || c > '~' || c == '\\' {
			return nil, false
		}
	}
	s.at += n + 1
	return out, true
}

// mostDigits is how many digits fit an int64 whatever they are.
const mostDigits = 18

// whole takes a number without a fraction or an exponent.
func (s *hashedScanner) whole() (int64, bool) {
	s.space()
	i, negative := s.at, false
	if i < len(s.line) && s.line[i] == '-' {
		negative = true
		i++
	}
	first, n := i, int64(0)
	for i < len(s.line) && s.line[i]-'0' < 10 {
		n = n*10 + int64(s.line[i]-'0')
		i++
	}
	digits := i - first
	if digits == 0 || digits > mostDigits || digits > 1 && s.line[first] == '0' || i < len(s.line) && (s.line[i] == '.' || s.line[i]|0x20 == 'e') {
		return 0, false
	}
	s.at = i
	if negative {
		n = -n
	}
	return n, true
}

// number takes a number with at most a plain fraction.
func (s *hashedScanner) number() (float64, bool) {
	if n, ok := s.whole(); ok {
		return float64(n), true
	}
	from := s.at
	i, dots := from, 0
	if i < len(s.line) && s.line[i] == '-' {
		i++
	}
	first := i
	for i < len(s.line) && (s.line[i]-'0' < 10 || s.line[i] == '.' && i > first && dots == 0) {
		if s.line[i] == '.' {
			dots++
		}
		i++
	}
	if i == first || s.line[i-1] == '.' || s.line[first] == '0' && i > first+1 && s.line[first+1] != '.' || i < len(s.line) && s.line[i]|0x20 == 'e' {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(s.line[from:i]), 64)
	s.at = i
	return n, err == nil
}

// member takes the value of a member.
func (s *hashedScanner) member(key string, l *hashedFields) (ok bool) {
	switch key {
	case "timestamp":
		l.timestamp, l.hasTimestamp = s.number()
		return l.hasTimestamp
	case "input_length":
		l.input, l.hasInput = s.whole()
		return l.hasInput
	case "output_length":
		l.output, l.hasOutput = s.whole()
		return l.hasOutput
	case "hash_ids":
		l.hashes, l.blocks, ok = s.list()
		return ok
	case "type":
		l.kind, ok = s.plain(false)
		return ok
	case "session_id":
		l.session, ok = s.plain(true)
		return ok
	case "chat_id":
		l.chat, ok = s.plain(true)
		return ok
	case "parent_chat_id":
		l.parent, ok = s.plain(true)
		return ok
	case "turn": // which Bailian's have, and we have no use for
		_, ok = s.whole()
		return ok
	}
	return false
}

// plain takes a string, or a whole number as a string.
func (s *hashedScanner) plain(numbers bool) (string, bool) {
	if text, ok := s.text(); ok {
		return string(text), true
	}
	if s.at > 0 && s.line[s.at-1] == '"' || !numbers {
		return "", false
	}
	s.space()
	from := s.at
	_, ok := s.whole()
	return string(s.line[from:s.at]), ok
}

// list takes a list of whole numbers: how many there are, and unless the
// reading is brief, which.
func (s *hashedScanner) list() (out []uint64, n int, ok bool) {
	if !s.token('[') {
		return nil, 0, false
	}
	if s.token(']') {
		return []uint64{}, 0, true
	}
	if !s.brief {
		end := bytes.IndexByte(s.line[s.at:], ']')
		if end < 0 {
			return nil, 0, false
		}
		out = make([]uint64, 0, bytes.Count(s.line[s.at:s.at+end], []byte(","))+1)
	}
	for {
		id, ok := s.id()
		if !ok {
			return nil, 0, false
		}
		if n++; !s.brief {
			out = append(out, id)
		}
		if s.at < len(s.line) && s.line[s.at] == ',' {
			s.at++
			continue
		}
		return out, n, s.token(']')
	}
}

// id takes a number of a list: nearly all that a trace is made of.
func (s *hashedScanner) id() (uint64, bool) {
	line, i := s.line, s.at
	if i < len(line) && line[i] == ' ' {
		i++
	}
	first, n := i, uint64(0)
	for i < len(line) && line[i]-'0' < 10 {
		n = n*10 + uint64(line[i]-'0')
		i++
	}
	if digits := i - first; digits > 0 && digits <= mostDigits && (digits == 1 || line[first] != '0') && i < len(line) && (line[i] == ',' || line[i] == ']') {
		s.at = i
		return n, true
	}
	v, ok := s.whole()
	s.space()
	return uint64(v), ok
}
