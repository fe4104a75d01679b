// Package jsonscan reads JSON documents in one pass and without allocating. A Scanner validates the whole document,
// so encoding/json accepts every document a Scanner accepts. Callers read only the members they need.
package jsonscan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is the nesting limit of encoding/json. maxDepth also bounds the recursion.
const maxDepth = 10000

var (
	errEnd   = errors.New("unexpected end of JSON")
	errDepth = errors.New("JSON nested too deep")
)

// A Scanner reads one document. Errors are sticky: after the first error, every method returns zero values and Err
// returns that first error.
type Scanner struct {
	doc   []byte
	pos   int
	depth int
	err   error
	key   []byte // scratch for keys with escapes
}

// Reset starts a new document. The scanner refers to doc until the next Reset.
func (s *Scanner) Reset(doc []byte) {
	s.doc, s.pos, s.depth, s.err = doc, 0, 0, nil
	s.space()
}

// Err returns the first error. Bytes after the document are an error, too. Call Err after reading the top-level
// value.
func (s *Scanner) Err() error {
	if s.err == nil {
		s.space()
		if s.pos < len(s.doc) {
			s.unexpected("after the document")
		}
	}
	return s.err
}

// Type returns the first byte of the next value: one of { [ " t f n, or - and digits for numbers. At the end, Type
// returns 0.
func (s *Scanner) Type() byte {
	if s.pos >= len(s.doc) {
		return 0
	}
	return s.doc[s.pos]
}

// Offset returns the position of the next value in the document.
func (s *Scanner) Offset() int { return s.pos }

// Rest returns the part of the document that was not read.
func (s *Scanner) Rest() []byte { return s.doc[s.pos:] }

// Object calls member for every member of the next value, if the value is an object, and reports whether it was.
// Object skips any other value, and any member value the callback does not read. key is valid until the callback
// reads the value.
func (s *Scanner) Object(member func(key []byte)) bool {
	if s.Type() != '{' {
		s.Skip()
		return false
	}
	if !s.enter() {
		return false
	}
	if s.Type() == '}' {
		return s.leave()
	}
	for {
		key := s.memberKey()
		if s.err != nil {
			return false
		}
		start := s.pos
		member(key)
		if s.pos == start {
			s.Skip()
		}
		if more := s.separator('}'); !more {
			return s.err == nil
		}
	}
}

// Document reads doc, which must be one object, and calls member as Object does.
func (s *Scanner) Document(doc []byte, member func(key []byte)) error {
	s.Reset(doc)
	isObject := s.Object(member)
	if s.Err() == nil && !isObject {
		return errNotObject
	}
	return s.Err()
}

var errNotObject = errors.New("not a JSON object")

// Array calls element for every element of the next value, as Object does for members.
func (s *Scanner) Array(element func()) bool {
	if s.Type() != '[' {
		s.Skip()
		return false
	}
	if !s.enter() {
		return false
	}
	if s.Type() == ']' {
		return s.leave()
	}
	for {
		start := s.pos
		element()
		if s.pos == start {
			s.Skip()
		}
		if more := s.separator(']'); !more {
			return s.err == nil
		}
	}
}

// Len returns the number of elements if the next value is an array, otherwise 0.
func (s *Scanner) Len() int {
	n := 0
	s.Array(func() { n++ })
	return n
}

// String appends the next value, unescaped, to dst if the value is a string, and reports whether it was. String
// skips any other value.
func (s *Scanner) String(dst []byte) ([]byte, bool) {
	if s.Type() != '"' {
		s.Skip()
		return dst, false
	}
	raw, escaped := s.rawString()
	if s.err != nil {
		return dst, false
	}
	s.space()
	if !escaped {
		return append(dst, raw...), true
	}
	return unescape(dst, raw), true
}

// Int returns the next value if the value is an integer of at most 18 digits. Int skips any other value, including
// numbers with a fraction or an exponent.
func (s *Scanner) Int() (int64, bool) {
	start := s.pos
	if s.Type() == '-' {
		s.pos++
	}
	n, end := s.wholeNumber()
	if end == s.pos || end < len(s.doc) && (s.doc[end] == '.' || s.doc[end]|0x20 == 'e') {
		s.pos = start
		s.Skip()
		return 0, false
	}
	if s.pos > start {
		n = -n
	}
	s.pos = end
	s.space()
	return n, true
}

// wholeNumber parses the digits at the current position and returns the index after the last digit. If there are no
// digits, more than 18, or a leading zero, end is the current position.
func (s *Scanner) wholeNumber() (n int64, end int) {
	doc, i := s.doc, s.pos
	for i < len(doc) && doc[i]-'0' < 10 {
		n = n*10 + int64(doc[i]-'0')
		i++
	}
	if digits := i - s.pos; digits > 18 || digits > 1 && doc[s.pos] == '0' {
		return 0, s.pos
	}
	return n, i
}

// Ints appends the integers of the next value, read as by Int, to dst. Ints reports whether the value was an array
// of only integers.
func (s *Scanner) Ints(dst []int64) ([]int64, bool) {
	if s.Type() != '[' {
		s.Skip()
		return dst, false
	}
	if !s.enter() || s.Type() == ']' {
		return dst, s.err == nil && s.leave()
	}
	for all := true; ; {
		if n, end := s.wholeNumber(); end > s.pos && end+1 < len(s.doc) && s.doc[end] == ',' { // the common case
			dst = append(dst, n)
			if s.pos = end + 1; s.doc[s.pos] == ' ' {
				s.pos++
			}
			continue
		}
		s.space()
		n, ok := s.Int()
		dst, all = append(dst, n), all && ok
		if more := s.separator(']'); !more {
			return dst, all && s.err == nil
		}
	}
}

// maxNatural is the greatest integer every JSON reader represents exactly. Hundreds of such counts add up without
// overflowing an int.
const maxNatural = 1 << 53

// Natural returns the next value as a count, at most maxNatural. If the value is not a count, Natural returns 0.
func (s *Scanner) Natural() int {
	n, _ := s.Int()
	return int(min(max(n, 0), maxNatural))
}

// NaturalIfPresent stores the next value in n as Natural does, and sets present. If the next value is not an
// integer, for example null, n and present keep their values.
func (s *Scanner) NaturalIfPresent(n *int, present *bool) {
	if v, ok := s.Int(); ok {
		*n, *present = int(min(max(v, 0), maxNatural)), true
	}
}

// Float returns the next value if the value is a number, otherwise 0.
func (s *Scanner) Float() float64 {
	f, err := strconv.ParseFloat(string(bytes.TrimSpace(s.Skip())), 64)
	if err != nil || s.err != nil {
		return 0
	}
	return f
}

// Skip skips the next value and returns the bytes of the value.
func (s *Scanner) Skip() []byte {
	start := s.pos
	switch c := s.Type(); {
	case s.err != nil:
		return nil
	case c == '{':
		s.Object(func([]byte) {})
		return s.since(start)
	case c == '[':
		s.Array(func() {})
		return s.since(start)
	case c == '"':
		s.rawString()
	case c == 't':
		s.literal("true")
	case c == 'f':
		s.literal("false")
	case c == 'n':
		s.literal("null")
	case c == '-' || '0' <= c && c <= '9':
		s.number()
	default:
		s.unexpected("where a value should begin")
	}
	if s.err != nil {
		return nil
	}
	raw := s.doc[start:s.pos]
	s.space()
	return raw
}

// since returns the bytes read since mark, without trailing white space.
func (s *Scanner) since(mark int) []byte {
	if s.err != nil {
		return nil
	}
	end := s.pos
	for end > mark && isSpace(s.doc[end-1]) {
		end--
	}
	return s.doc[mark:end]
}

func (s *Scanner) enter() bool {
	if s.depth++; s.depth > maxDepth {
		s.fail(errDepth)
		return false
	}
	s.pos++
	s.space()
	return true
}

func (s *Scanner) leave() bool {
	s.depth--
	s.pos++
	s.space()
	return true
}

// separator reads the comma or closing bracket after a value and reports whether another value follows.
func (s *Scanner) separator(closing byte) bool {
	switch s.Type() {
	case ',':
		s.pos++
		s.space()
		return true
	case closing:
		s.leave()
		return false
	}
	s.unexpected("after a value")
	return false
}

func (s *Scanner) memberKey() []byte {
	if s.Type() != '"' {
		s.unexpected("where a key should begin")
		return nil
	}
	key, escaped := s.rawString()
	if escaped && s.err == nil {
		s.key = unescape(s.key[:0], key)
		key = s.key
	}
	s.space()
	if s.Type() != ':' {
		s.unexpected("after a key")
		return nil
	}
	s.pos++
	s.space()
	return key
}

// rawString reads the string at the current position. raw is the text between the quotes; escaped reports whether
// raw contains escapes.
func (s *Scanner) rawString() (raw []byte, escaped bool) {
	doc, start := s.doc, s.pos+1
	for i := start; ; {
		// Strings are the bulk of a document, so test eight bytes per step while none of the eight is special.
		for i+8 <= len(doc) {
			special := specialBytes(binary.LittleEndian.Uint64(doc[i:]))
			if special != 0 {
				i += bits.TrailingZeros64(special) / 8
				break
			}
			i += 8
		}
		if i >= len(doc) {
			s.fail(errEnd)
			return nil, false
		}
		switch c := doc[i]; {
		case c == '"':
			s.pos = i + 1
			return doc[start:i], escaped
		case c == '\\':
			escaped = true
			n := escapeLength(doc[i:])
			if n == 0 {
				s.pos = i
				s.unexpected("in a string escape")
				return nil, false
			}
			i += n
		case c < ' ':
			s.pos = i
			s.unexpected("in a string")
			return nil, false
		default:
			i++ // one of the last seven bytes of the document
		}
	}
}

// specialBytes sets the top bit of each byte of x that is a quote, a backslash or a control character. A borrow may
// also set the top bit of a byte above a special byte, so only the lowest set bit is reliable.
func specialBytes(x uint64) uint64 {
	const each, top = 0x0101010101010101, 0x8080808080808080
	quote, backslash := x^('"'*each), x^('\\'*each)
	return ((x-' '*each)&^x | (quote-each)&^quote | (backslash-each)&^backslash) & top
}

// NeedsNoEscape reports whether text can be a JSON string without escaping.
func NeedsNoEscape(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// escapeLength returns the length of the escape at the start of b, or 0 if b does not start with an escape.
func escapeLength(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) >= 6 && hex4(b[2:6]) >= 0 {
			return 6
		}
	}
	return 0
}

// hex4 returns the value of four hexadecimal digits, or -1 if b contains another character.
func hex4(b []byte) rune {
	var r rune
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// unescape appends raw, with valid escapes only, to dst. Half a surrogate pair becomes U+FFFD, as in encoding/json.
func unescape(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			dst = append(dst, raw[i])
			i++
			continue
		}
		switch c := raw[i+1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := hex4(raw[i+2 : i+6])
			if utf16.IsSurrogate(r) {
				low := rune(-1)
				if rest := raw[i+6:]; len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
					low = hex4(rest[2:6])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			dst = utf8.AppendRune(dst, r)
			i += 4
		default:
			dst = append(dst, c)
		}
		i += 2
	}
	return dst
}

func (s *Scanner) number() {
	if s.doc[s.pos] == '-' {
		s.pos++
	}
	switch c := s.Type(); {
	case c == '0':
		s.pos++
	case '1' <= c && c <= '9':
		s.digits()
	default:
		s.unexpected("in a number")
		return
	}
	if s.Type() == '.' {
		s.pos++
		s.digits()
	}
	if c := s.Type(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.Type(); c == '+' || c == '-' {
			s.pos++
		}
		s.digits()
	}
}

// digits reads one or more digits.
func (s *Scanner) digits() {
	start := s.pos
	for s.pos < len(s.doc) && '0' <= s.doc[s.pos] && s.doc[s.pos] <= '9' {
		s.pos++
	}
	if s.pos == start {
		s.unexpected("in a number")
	}
}

func (s *Scanner) literal(word string) {
	if end := s.pos + len(word); end <= len(s.doc) && string(s.doc[s.pos:end]) == word {
		s.pos = end
		return
	}
	s.unexpected("where a value should begin")
}

func (s *Scanner) space() {
	if s.pos < len(s.doc) && s.doc[s.pos] > ' ' { // the common case
		return
	}
	for s.pos < len(s.doc) && isSpace(s.doc[s.pos]) {
		s.pos++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func (s *Scanner) unexpected(where string) {
	if s.pos >= len(s.doc) {
		s.fail(errEnd)
		return
	}
	s.fail(fmt.Errorf("unexpected %q %s at byte %d of JSON", s.doc[s.pos], where, s.pos))
}

// fail records the first error and moves to the end of the document, so callers find no more values and need not
// check for errors after each step.
func (s *Scanner) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.pos = len(s.doc)
}
