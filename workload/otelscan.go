package workload

import (
	"bytes"
	"strconv"

	"github.com/tacho-bench/tacho/internal/jsonscan"
)

// spanScanner finds the spans in a row of JSON. It reads only the fields needed before
// the run starts: the trace, the times and the token counts. Skipping everything else
// makes it about 100 times faster than a JSON parser. The rest is parsed when the call is
// due.
type spanScanner struct {
	jsonscan.Scanner
	row       []byte
	fn        func(raw []byte, offset int, f *spanFields) error
	err       error // error of fn
	malformed bool  // a value of another type where an object is expected
}

// spanFields are the fields read from a span.
type spanFields struct {
	trace      []byte
	start, end int64
	usage      [4]int // tokens in the order of usageNames; 0 means missing
	attributes bool
	fallback   bool // unusual form: use the JSON parser
}

// usageNames are the token count attributes: two names for the prompt, then two for the
// answer.
var usageNames = [4]string{"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"}

func (f *spanFields) input() int  { return firstPositive(f.usage[0], f.usage[1]) }
func (f *spanFields) output() int { return firstPositive(f.usage[2], f.usage[3]) }

func firstPositive(a, b int) int {
	if a > 0 {
		return a
	}
	return max(b, 0)
}

// spansIn calls fn for all spans in a row, which is a span or OTLP's nested form. ok is
// false if the row is not JSON.
func spansIn(row []byte, fn func(raw []byte, offset int, f *spanFields) error) (ok bool, err error) {
	s := spanScanner{row: row, fn: fn}
	s.Reset(row)
	var own spanFields
	s.nest(&own)
	if s.malformed || s.err != nil || s.Err() != nil {
		return false, s.err
	}
	if own.attributes {
		err = fn(row, 0, &own)
	}
	return true, err
}

// object reads an object or null.
func (s *spanScanner) object(member func(key []byte)) {
	null := s.Type() == 'n'
	s.malformed = !s.Object(member) && !null || s.malformed
}

// nest reads an object that contains spans or is a span.
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
	if s.err == nil && !s.malformed {
		s.err = s.fn(bytes.TrimRight(s.row[from:s.Offset()], " \t\r\n"), from, &f)
	}
}

func (s *spanScanner) member(key []byte, f *spanFields) {
	switch string(key) {
	case "traceId":
		f.trace = s.plain(&f.fallback)
	case "trace_id":
		if text := s.plain(&f.fallback); len(f.trace) == 0 {
			f.trace = text
		}
	case "startTimeUnixNano":
		f.start = s.whole(&f.fallback)
	case "endTimeUnixNano":
		f.end = s.whole(&f.fallback)
	case "start_time", "end_time":
		f.fallback = true
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
				key = s.plain(&f.fallback)
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
				f.fallback = true
			}
		})
		f.fallback = f.fallback || !known // use the JSON parser
	})
}

// usageOf returns the index of key in usageNames, or -1.
func usageOf(key []byte) int {
	for i, name := range usageNames {
		if string(key) == name {
			return i
		}
	}
	return -1
}

// usage reads the i-th token count.
func (s *spanScanner) usage(i int, f *spanFields) {
	if i >= 0 {
		f.usage[i] = int(s.whole(&f.fallback))
	}
}

// whole reads an integer, with or without quotes. It sets fallback for other values.
func (s *spanScanner) whole(fallback *bool) int64 {
	text := s.Skip()
	if len(text) > 1 && text[0] == '"' {
		text = text[1 : len(text)-1]
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	*fallback = *fallback || err != nil
	return n
}

// plain reads a string without escapes. It sets fallback for other values.
func (s *spanScanner) plain(fallback *bool) []byte {
	text := s.Skip()
	if len(text) < 2 || text[0] != '"' || !isASCII(text[1:len(text)-1]) {
		*fallback = true
		return nil
	}
	return text[1 : len(text)-1]
}

// isASCII reports whether text contains only printable ASCII characters and no escapes.
func isASCII(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return true
}
