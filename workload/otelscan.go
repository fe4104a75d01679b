package workload

import (
	"bytes"
	"strconv"

	"tacho/internal/jsonscan"
)

// A spanScanner finds the spans in a row of JSON and reads of them what must be
// known before the start: to which trace they belong, when they were, and
// whether they are calls of a model. All else it passes over, so that a million
// spans are looked through in the time that a parser takes for some ten thousand.
// What it passes over is parsed when the call is due.
type spanScanner struct {
	jsonscan.Scanner
	row []byte
	fn  func(raw []byte, offset int, f *spanFields) error
	err error // of fn
	odd bool  // something is there where an object should be
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
	s := spanScanner{row: row, fn: fn}
	s.Reset(row)
	var own spanFields
	s.nest(&own)
	if s.odd || s.err != nil || s.Err() != nil {
		return false, s.err
	}
	if own.attributes {
		err = fn(row, 0, &own)
	}
	return true, err
}

// object reads an object, or nothing.
func (s *spanScanner) object(member func(key []byte)) {
	null := s.Type() == 'n'
	s.odd = !s.Object(member) && !null || s.odd
}

// nest reads an object that has spans somewhere in it, or is one.
func (s *spanScanner) nest(own *spanFields) {
	s.object(func(key []byte) {
		switch string(key) {
		case "resourceSpans", "scopeSpans":
			s.Array(func() { s.nest(new(spanFields)) })
		case "spans":
			s.Array(s.span)
		default:
			s.member(key, own)
		}
	})
}

func (s *spanScanner) span() {
	from := s.Offset()
	var f spanFields
	s.object(func(key []byte) { s.member(key, &f) })
	if s.err == nil && !s.odd {
		s.err = s.fn(bytes.TrimRight(s.row[from:s.Offset()], " \t\r\n"), from, &f)
	}
}

// member reads a member of a span.
func (s *spanScanner) member(key []byte, f *spanFields) {
	switch string(key) {
	case "traceId":
		f.trace = s.plain(&f.unsure)
	case "trace_id":
		if text := s.plain(&f.unsure); len(f.trace) == 0 {
			f.trace = text
		}
	case "startTimeUnixNano":
		f.start = s.whole(&f.unsure)
	case "endTimeUnixNano":
		f.end = s.whole(&f.unsure)
	case "start_time", "end_time":
		f.unsure = true
	case "attributes":
		f.attributes = true
		s.attributes(f)
	}
}

// attributes reads an object of attributes, or OTLP's list of pairs.
func (s *spanScanner) attributes(f *spanFields) {
	if s.Type() == '{' {
		s.object(func(key []byte) { s.usage(usageOf(key), f) })
		return
	}
	s.Array(func() {
		var key, value []byte
		s.object(func(name []byte) {
			switch string(name) {
			case "key":
				key = s.plain(&f.unsure)
			case "value":
				value = s.Skip()
			}
		})
		i := usageOf(key)
		if i < 0 {
			return
		}
		one := spanScanner{}
		one.Reset(value)
		known := false
		one.object(func(name []byte) {
			switch string(name) {
			case "intValue", "stringValue", "doubleValue":
				known = true
				one.usage(i, f)
			default:
				f.unsure = true
			}
		})
		f.unsure = f.unsure || !known // let the parser say
	})
}

// usageOf is which number of tokens an attribute tells; -1 if none.
func usageOf(key []byte) int {
	for i, name := range usageNames {
		if string(key) == name {
			return i
		}
	}
	return -1
}

// usage reads the value of an attribute that tells the i-th number of tokens.
func (s *spanScanner) usage(i int, f *spanFields) {
	if i >= 0 {
		f.usage[i] = int(s.whole(&f.unsure))
	}
}

// whole reads a number without a fraction, in quotes or not. What is none is
// left to the parser.
func (s *spanScanner) whole(unsure *bool) int64 {
	text := s.Skip()
	if len(text) > 1 && text[0] == '"' {
		text = text[1 : len(text)-1]
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	*unsure = *unsure || err != nil
	return n
}

// plain reads a string that is as it is written. What is none is left to the
// parser.
func (s *spanScanner) plain(unsure *bool) []byte {
	text := s.Skip()
	if len(text) < 2 || text[0] != '"' || !isASCII(text[1:len(text)-1]) {
		*unsure = true
		return nil
	}
	return text[1 : len(text)-1]
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
