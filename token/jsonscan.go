package token

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A jsonScanner reads JSON in one pass without building values: a vocabulary
// of a quarter of a million entries is read several times faster than
// encoding/json reads it. Small parts are handed to encoding/json as raw bytes.
type jsonScanner struct {
	data []byte
	pos  int
}

var errUnexpectedEnd = errors.New("the file ends too early")

// fail describes what was found where something else was expected.
func (s *jsonScanner) fail(want string) error {
	if s.pos >= len(s.data) {
		return fmt.Errorf("expected %s: %w", want, errUnexpectedEnd)
	}
	return fmt.Errorf("expected %s, found %q at byte %d", want, s.data[s.pos], s.pos)
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *jsonScanner) peek() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// take consumes c, the next byte after white space.
func (s *jsonScanner) take(c byte) error {
	if s.peek() != c {
		return s.fail(strconv.QuoteRune(rune(c)))
	}
	s.pos++
	return nil
}

// more consumes the separator before the next element of an array or object
// that closes with end; it is false after the last. first is true once.
func (s *jsonScanner) more(end byte, first bool) (bool, error) {
	switch c := s.peek(); {
	case c == end:
		s.pos++
		return false, nil
	case first:
		return true, nil
	case c == ',':
		s.pos++
		if s.peek() == end {
			return false, s.fail("a value after the comma")
		}
		return true, nil
	}
	return false, s.fail(fmt.Sprintf("',' or %q", end))
}

// object calls field for each key, with the scanner before the value.
func (s *jsonScanner) object(field func(key string) error) error {
	if err := s.take('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		ok, err := s.more('}', first)
		if err != nil || !ok {
			return err
		}
		key, err := s.str()
		if err != nil {
			return err
		}
		if err := s.take(':'); err != nil {
			return err
		}
		if err := field(string(key)); err != nil {
			return err
		}
	}
}

// array calls element for each element, with the scanner before it.
func (s *jsonScanner) array(element func(i int) error) error {
	if err := s.take('['); err != nil {
		return err
	}
	for i := 0; ; i++ {
		ok, err := s.more(']', i == 0)
		if err != nil || !ok {
			return err
		}
		if err := element(i); err != nil {
			return err
		}
	}
}

// str reads a string. The bytes are those of the input where it has no
// escapes, and must not be changed.
func (s *jsonScanner) str() ([]byte, error) {
	if err := s.take('"'); err != nil {
		return nil, err
	}
	start := s.pos
	end := bytes.IndexByte(s.data[start:], '"')
	if end < 0 {
		s.pos = len(s.data)
		return nil, s.fail("'\"'")
	}
	if plain := s.data[start : start+end]; bytes.IndexByte(plain, '\\') < 0 {
		s.pos = start + end + 1
		return plain, nil
	}
	return s.escapedString()
}

func (s *jsonScanner) escapedString() ([]byte, error) {
	var out []byte
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		switch c {
		case '"':
			s.pos++
			return out, nil
		case '\\':
			var err error
			if out, err = s.escape(out); err != nil {
				return nil, err
			}
		default:
			out = append(out, c)
			s.pos++
		}
	}
	return nil, s.fail("'\"'")
}

// escape appends what the escape sequence at pos stands for.
func (s *jsonScanner) escape(out []byte) ([]byte, error) {
	s.pos++
	if s.pos >= len(s.data) {
		return nil, s.fail("an escape")
	}
	c := s.data[s.pos]
	if i := bytes.IndexByte([]byte(`"\/bfnrt`), c); i >= 0 {
		s.pos++
		return append(out, "\"\\/\b\f\n\r\t"[i]), nil
	}
	if c != 'u' {
		return nil, s.fail("an escape")
	}
	r, err := s.hex4()
	if err != nil {
		return nil, err
	}
	if utf16.IsSurrogate(r) {
		r, err = s.lowSurrogate(r)
		if err != nil {
			return nil, err
		}
	}
	return utf8.AppendRune(out, r), nil
}

// lowSurrogate completes the pair that high begins; half a pair is U+FFFD.
func (s *jsonScanner) lowSurrogate(high rune) (rune, error) {
	if s.pos+1 < len(s.data) && s.data[s.pos] == '\\' && s.data[s.pos+1] == 'u' {
		before := s.pos
		s.pos++
		low, err := s.hex4()
		if err != nil {
			return 0, err
		}
		if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
			return r, nil
		}
		s.pos = before
	}
	return utf8.RuneError, nil
}

// hex4 reads uXXXX.
func (s *jsonScanner) hex4() (rune, error) {
	if s.pos+5 > len(s.data) {
		s.pos = len(s.data)
		return 0, s.fail("four hexadecimal digits")
	}
	n, err := strconv.ParseUint(string(s.data[s.pos+1:s.pos+5]), 16, 16)
	if err != nil {
		return 0, s.fail("four hexadecimal digits")
	}
	s.pos += 5
	return rune(n), nil
}

// number reads the bytes of a number.
func (s *jsonScanner) number() ([]byte, error) {
	s.peek()
	start := s.pos
	for s.pos < len(s.data) && isNumberByte(s.data[s.pos]) {
		s.pos++
	}
	if start == s.pos {
		return nil, s.fail("a number")
	}
	return s.data[start:s.pos], nil
}

func isNumberByte(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// integer reads a token id: an integer from 0 to maxTokenID.
func (s *jsonScanner) integer() (int32, error) {
	b, err := s.number()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%s is not a token id", b)
		}
		if n = n*10 + int(c-'0'); n > maxTokenID {
			return 0, fmt.Errorf("%s is too large for a token id", b)
		}
	}
	return int32(n), nil
}

// skip passes over one value of any kind and returns its bytes, whose inner
// syntax it does not check.
func (s *jsonScanner) skip() ([]byte, error) {
	s.peek()
	start := s.pos
	depth := 0
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case '"':
			if err := s.skipString(); err != nil {
				return nil, err
			}
		case '{', '[':
			depth++
			s.pos++
		case '}', ']':
			if depth == 0 {
				return nil, s.fail("a value")
			}
			depth--
			s.pos++
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return nil, s.fail("a value")
			}
			s.pos++
			continue
		default:
			s.skipWord()
		}
		if depth == 0 {
			return s.data[start:s.pos], nil
		}
	}
	return nil, s.fail("a value")
}

// skipWord passes over a number, true, false or null.
func (s *jsonScanner) skipWord() {
	for s.pos < len(s.data) && bytes.IndexByte([]byte(",:]} \t\n\r\"{["), s.data[s.pos]) < 0 {
		s.pos++
	}
}

func (s *jsonScanner) skipString() error {
	for s.pos++; s.pos < len(s.data); s.pos++ {
		switch s.data[s.pos] {
		case '"':
			s.pos++
			return nil
		case '\\':
			s.pos++
		}
	}
	s.pos = len(s.data)
	return s.fail("'\"'")
}
