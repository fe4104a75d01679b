package workload

import (
	"bytes"
	"strconv"
)

// A spanScanner finds the spans in a row of JSON and reads of them what must be
// known before the start: to which trace they belong, when they were, and
// whether they are calls of a model. All else it passes over, so that a million
// spans are looked through in the time that a parser takes for some ten thousand.
// What it passes over is parsed when the call is due.
type spanScanner struct {
	data []byte
	at   int
}

// spanFields are what is read of a span.
type spanFields struct {
	trace      []byte
	start, end int64
	usage      [4]int // tokens by the names of usageNames; 0 is none
	attributes bool
	unsure     bool // something is written in another way than usual: let the parser say
}

// usageNames are the attributes that tell tokens: of the prompt by either name,
// then of the answer.
var usageNames = [4]string{"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"}

func (f *spanFields) input() int  { return firstAbove0(f.usage[0], f.usage[1]) }
func (f *spanFields) output() int { return firstAbove0(f.usage[2], f.usage[3]) }

func firstAbove0(a, b int) int {
	if a > 0 {
		return a
	}
	return max(b, 0)
}

// spansIn tells fn of all spans in a row: a span, or OTLP's nest of them. It is
// false where the row is no JSON.
func spansIn(row []byte, fn func(raw []byte, offset int, f *spanFields) error) (ok bool, err error) {
	s := spanScanner{data: row}
	var own spanFields
	ok, err = s.nest(&own, fn)
	if s.space(); !ok || err != nil || s.at != len(row) {
		return false, err
	}
	if own.attributes {
		err = fn(row, 0, &own)
	}
	return true, err
}

// nest reads an object that has spans somewhere in it, or is one.
func (s *spanScanner) nest(own *spanFields, fn func([]byte, int, *spanFields) error) (ok bool, err error) {
	ok = s.members(func(key []byte) bool {
		switch string(key) {
		case "resourceSpans", "scopeSpans":
			return s.elements(func() (ok bool) {
				var none spanFields
				ok, err = s.nest(&none, fn)
				return ok && err == nil
			})
		case "spans":
			return s.elements(func() bool {
				s.space()
				from := s.at
				var f spanFields
				if !s.members(func(key []byte) bool { return s.spanMember(key, &f) }) {
					return false
				}
				err = fn(s.data[from:s.at], from, &f)
				return err == nil
			})
		}
		return s.spanMember(key, own)
	})
	return ok, err
}

// spanMember reads a member of a span.
func (s *spanScanner) spanMember(key []byte, f *spanFields) bool {
	switch string(key) {
	case "traceId", "trace_id":
		text, ok := s.plain(&f.unsure)
		if len(f.trace) == 0 || key[5] == 'I' {
			f.trace = text
		}
		return ok
	case "startTimeUnixNano":
		return s.whole(&f.start, &f.unsure)
	case "endTimeUnixNano":
		return s.whole(&f.end, &f.unsure)
	case "start_time", "end_time":
		f.unsure = true
	case "attributes":
		f.attributes = true
		return s.attributes(f)
	}
	return s.skip()
}

// attributes reads an object of attributes, or OTLP's list of pairs.
func (s *spanScanner) attributes(f *spanFields) bool {
	if s.peek() == '{' {
		return s.members(func(key []byte) bool { return s.usage(key, f) })
	}
	return s.elements(func() bool {
		var key []byte
		from := -1
		ok := s.members(func(name []byte) (ok bool) {
			switch string(name) {
			case "key":
				key, ok = s.plain(&f.unsure)
				return ok
			case "value":
				s.space()
				from = s.at
			}
			return s.skip()
		})
		if !ok || from < 0 || usageOf(key, f) < 0 {
			return ok
		}
		value := spanScanner{data: s.data[:s.at], at: from}
		return value.members(func(name []byte) bool {
			switch string(name) {
			case "intValue", "stringValue", "doubleValue":
				return value.usage(key, f)
			}
			f.unsure = true
			return value.skip()
		})
	})
}

// usageOf is which number of tokens an attribute tells; -1 if none.
func usageOf(key []byte, f *spanFields) int {
	f.unsure = f.unsure || !isASCII(key)
	for i, name := range usageNames {
		if string(key) == name {
			return i
		}
	}
	return -1
}

// usage reads the value of an attribute, if it tells a number of tokens.
func (s *spanScanner) usage(key []byte, f *spanFields) bool {
	i := usageOf(key, f)
	if i < 0 {
		return s.skip()
	}
	var n int64
	ok := s.whole(&n, &f.unsure)
	f.usage[i] = int(n)
	return ok
}

// whole reads a number without a fraction, in quotes or not. What is none is
// left to the parser.
func (s *spanScanner) whole(n *int64, unsure *bool) bool {
	s.space()
	from := s.at
	if !s.skip() {
		return false
	}
	text := s.data[from:s.at]
	if len(text) > 1 && text[0] == '"' {
		text = text[1 : len(text)-1]
	}
	v, err := strconv.ParseInt(string(text), 10, 64)
	*n, *unsure = v, *unsure || err != nil
	return true
}

func (s *spanScanner) space() {
	for s.at < len(s.data) && (s.data[s.at] == ' ' || s.data[s.at] == '\n' || s.data[s.at] == '\r' || s.data[s.at] == '\t') {
		s.at++
	}
}

// peek is the next sign, 0 at the end.
func (s *spanScanner) peek() byte {
	if s.space(); s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

// take takes a sign, if it is the next.
func (s *spanScanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// text takes a string, as it is written.
func (s *spanScanner) text() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	from := s.at
	for {
		n := bytes.IndexByte(s.data[s.at:], '"')
		if n < 0 {
			return nil, false
		}
		s.at += n + 1
		slashes := s.at - 2
		for slashes >= from && s.data[slashes] == '\\' {
			slashes--
		}
		if (s.at-slashes)%2 == 0 { // an even number of them before the quote
			return s.data[from : s.at-1], true
		}
	}
}

// plain takes a string that is as it is written. What is none is left to the
// parser.
func (s *spanScanner) plain(unsure *bool) ([]byte, bool) {
	if s.peek() != '"' {
		*unsure = true
		return nil, s.skip()
	}
	text, ok := s.text()
	*unsure = *unsure || !isASCII(text)
	return text, ok
}

// isASCII says whether a text has neither escapes nor signs that may be badly
// encoded.
func isASCII(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return true
}

// members takes an object, or nothing; fn takes the value of each key.
func (s *spanScanner) members(fn func(key []byte) bool) bool {
	if s.peek() == 'n' {
		return s.skip()
	}
	if !s.take('{') {
		return false
	}
	if s.take('}') {
		return true
	}
	for {
		key, ok := s.text()
		if !ok || !s.take(':') || !fn(key) {
			return false
		}
		if !s.take(',') {
			return s.take('}')
		}
	}
}

// elements takes a list; fn takes each element. Anything else is passed over.
func (s *spanScanner) elements(fn func() bool) bool {
	if s.peek() != '[' {
		return s.skip()
	}
	s.at++
	if s.take(']') {
		return true
	}
	for {
		if !fn() {
			return false
		}
		if !s.take(',') {
			return s.take(']')
		}
	}
}

// skip passes over a value.
func (s *spanScanner) skip() bool {
	for depth := 0; ; {
		switch c := s.peek(); c {
		case 0:
			return false
		case '"':
			if _, ok := s.text(); !ok {
				return false
			}
		case '{', '[':
			depth++
			s.at++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return false
			}
			s.at++
		case ',', ':':
			if depth == 0 {
				return false
			}
			s.at++
			continue
		default:
			for s.at < len(s.data) && !endsWord[s.data[s.at]] {
				s.at++
			}
		}
		if depth == 0 {
			return true
		}
	}
}

// endsWord are the signs that can be behind a number or a name.
var endsWord = [256]bool{',': true, '}': true, ']': true, ' ': true, '\n': true, '\r': true, '\t': true, ':': true, '"': true, '{': true, '[': true}
