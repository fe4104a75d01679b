package workload

import (
	"bytes"
	"strconv"

	"github.com/tacho-bench/tacho/internal/jsonscan"
)

// hashedScanner parses the usual form of a line of Mooncake's and Bailian's traces: one
// object of numbers, plain strings and a list of integers. It is several times faster
// than encoding/json. For any line that encoding/json might read differently it sets
// fallback.
type hashedScanner struct {
	jsonscan.Scanner
	hashedFields
	line      []byte
	countOnly bool // only count the hash ids
	fallback  bool
}

// scanHashed parses a line. It returns false if encoding/json must parse the line.
func scanHashed(line []byte, countOnly bool) (hashedFields, bool) {
	s := hashedScanner{line: line, countOnly: countOnly}
	err := s.Document(line, s.member)
	return s.hashedFields, err == nil && !s.fallback
}

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
	case "turn": // in Bailian's traces; not used
		_, ok = s.Int()
	}
	s.fallback = s.fallback || !ok
}

// number parses the next number. Most numbers are integers.
func (s *hashedScanner) number() (float64, bool) {
	from := s.Offset()
	if n, ok := s.Int(); ok {
		return float64(n), true
	}
	f, err := strconv.ParseFloat(string(bytes.TrimSpace(s.line[from:s.Offset()])), 64)
	return f, err == nil
}

// plain parses the next ASCII string, or the next integer as a string.
func (s *hashedScanner) plain() string {
	from := s.Offset()
	if s.Type() != '"' {
		_, ok := s.Int()
		s.fallback = s.fallback || !ok
		return string(bytes.TrimSpace(s.line[from:s.Offset()]))
	}
	text := s.Skip()
	for _, c := range text {
		s.fallback = s.fallback || c > '~' || c == '\\'
	}
	return string(bytes.Trim(text, `"`))
}

// list parses the hash ids. If countOnly is set, it keeps only their number.
func (s *hashedScanner) list() (ok bool) {
	var few [128]int64 // enough for almost all lists of Mooncake
	ids := few[:0]
	if rest := s.line[s.Offset():]; !s.countOnly {
		ids = make([]int64, 0, bytes.Count(rest[:bytes.IndexByte(rest, ']')+1], []byte(","))+1)
	}
	ids, ok = s.Ints(ids)
	if s.blocks = len(ids); !s.countOnly {
		s.hashes = ids
	}
	return ok
}
