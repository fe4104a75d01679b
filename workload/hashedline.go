package workload

import (
	"bytes"
	"strconv"

	"tacho/internal/jsonscan"
)

// A hashedScanner reads the usual form of a line of Mooncake's and Bailian's
// traces: one object of numbers, plain strings and a list of whole numbers. It
// is several times faster than encoding/json, and takes nothing that
// encoding/json would read otherwise: where it is not sure it says so.
type hashedScanner struct {
	jsonscan.Scanner
	hashedFields
	line   []byte
	brief  bool // hash ids are only counted
	unsure bool
}

// scanHashed reads a line; false leaves it to the parser of all JSON.
func scanHashed(line []byte, brief bool) (hashedFields, bool) {
	s := hashedScanner{line: line, brief: brief}
	err := s.Document(line, s.member)
	return s.hashedFields, err == nil && !s.unsure
}

// member reads the value of a member.
func (s *hashedScanner) member(key []byte) {
	ok := false
	switch string(key) {
	case "timestamp":
		s.timestamp, ok = s.number()
		s.hasTimestamp = ok
	case "input_length":
		s.input, ok = s.Int()
		s.hasInput = ok
	case "output_length":
		s.output, ok = s.Int()
		s.hasOutput = ok
	case "hash_ids":
		ok = s.list()
	case "type":
		ok = s.Type() == '"'
		s.kind = s.plain()
	case "session_id":
		s.session, ok = s.plain(), true
	case "chat_id":
		s.chat, ok = s.plain(), true
	case "parent_chat_id":
		s.parent, ok = s.plain(), true
	case "turn": // which Bailian's have, and we have no use for
		_, ok = s.Int()
	}
	s.unsure = s.unsure || !ok
}

// number is the number that comes next; most are whole.
func (s *hashedScanner) number() (float64, bool) {
	from := s.Offset()
	if n, ok := s.Int(); ok {
		return float64(n), true
	}
	f, err := strconv.ParseFloat(string(bytes.TrimSpace(s.line[from:s.Offset()])), 64)
	return f, err == nil
}

// plain is the string of ASCII that comes next, or the whole number as a
// string.
func (s *hashedScanner) plain() string {
	from := s.Offset()
	if s.Type() != '"' {
		_, ok := s.Int()
		s.unsure = s.unsure || !ok
		return string(bytes.TrimSpace(s.line[from:s.Offset()]))
	}
	text := s.Skip()
	for _, c := range text {
		s.unsure = s.unsure || c > '~' || c == '\\'
	}
	return string(bytes.Trim(text, `"`))
}

// list reads the hash ids: how many there are, and unless the reading is
// brief, which.
func (s *hashedScanner) list() (ok bool) {
	var few [128]int64 // nearly all lists of Mooncake's
	ids := few[:0]
	if rest := s.line[s.Offset():]; !s.brief {
		ids = make([]int64, 0, bytes.Count(rest[:bytes.IndexByte(rest, ']')+1], []byte(","))+1)
	}
	ids, ok = s.Ints(ids)
	if s.blocks = len(ids); !s.brief {
		s.hashes = ids
	}
	return ok
}
