package jinja

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokText     tokenKind = iota // text outside delimiters
	tokPrint                     // {{
	tokPrintEnd                  // }}
	tokStmt                      // {%
	tokStmtEnd                   // %}
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
	tokEOF
)

type token struct {
	kind tokenKind
	text string // for a string, its unescaped value
	pos  int    // offset in the source
}

// lexer splits a template into tokens. It handles white space around blocks as with
// trim_blocks and lstrip_blocks, which servers set for chat templates.
type lexer struct {
	src    string
	pos    int
	tokens []token
}

func lex(src string) ([]token, error) {
	l := &lexer{src: src}
	for l.pos < len(l.src) {
		if err := l.text(); err != nil {
			return nil, err
		}
	}
	l.emit(tokEOF, "")
	return l.tokens, nil
}

func (l *lexer) emit(kind tokenKind, text string) {
	l.tokens = append(l.tokens, token{kind, text, l.pos})
}

// lineAt returns the line number of an offset in the source.
func lineAt(src string, pos int) int { return 1 + strings.Count(src[:min(pos, len(src))], "\n") }

func (l *lexer) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", lineAt(l.src, l.pos), fmt.Sprintf(format, args...))
}

// text reads the text up to the next delimiter, then the block inside the delimiters.
func (l *lexer) text() error {
	rest := l.src[l.pos:]
	open := nextOpen(rest)
	if open < 0 {
		l.emit(tokText, rest)
		l.pos = len(l.src)
		return nil
	}
	text := rest[:open]
	kind := rest[open+1]
	inside := open + 2
	strip := byte(0)
	if inside < len(rest) && (rest[inside] == '-' || rest[inside] == '+') {
		strip = rest[inside]
		inside++
	}
	switch {
	case strip == '-':
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	case strip == 0 && kind != '{':
		text = l.stripLine(text)
	}
	if text != "" {
		l.emit(tokText, text)
	}
	l.pos += inside
	switch kind {
	case '#':
		return l.comment()
	case '{':
		l.emit(tokPrint, "")
		return l.block(tokPrintEnd, "}}")
	}
	if l.raw() {
		return nil
	}
	l.emit(tokStmt, "")
	return l.block(tokStmtEnd, "%}")
}

// nextOpen returns the offset of the next opening delimiter, or -1.
func nextOpen(s string) int {
	for i := 0; ; i++ {
		j := strings.IndexByte(s[i:], '{')
		if j < 0 || i+j+1 >= len(s) {
			return -1
		}
		i += j
		if c := s[i+1]; c == '{' || c == '%' || c == '#' {
			return i
		}
	}
}

// stripLine removes the spaces before a block at the start of a line.
func (l *lexer) stripLine(text string) string {
	line := strings.LastIndexByte(text, '\n') + 1
	first := line > 0 || l.pos == 0 || l.src[l.pos-1] == '\n'
	if first && strings.TrimSpace(text[line:]) == "" {
		return text[:line]
	}
	return text
}

// after skips the newline after a block, or all white space after a minus sign.
func (l *lexer) after(minus, plus, trimNewline bool) {
	switch {
	case minus:
		l.pos = len(l.src) - len(strings.TrimLeftFunc(l.src[l.pos:], unicode.IsSpace))
	case trimNewline && !plus && strings.HasPrefix(l.src[l.pos:], "\n"):
		l.pos++
	}
}

func (l *lexer) comment() error {
	end := strings.Index(l.src[l.pos:], "#}")
	if end < 0 {
		return l.errorf("comment is not closed")
	}
	body := l.src[l.pos : l.pos+end]
	l.pos += end + 2
	l.after(strings.HasSuffix(body, "-"), strings.HasSuffix(body, "+"), true)
	return nil
}

// These expressions match a raw block. Unlike other blocks, raw keeps the newline after
// its start.
var (
	rawStart = regexp.MustCompile(`^\s*raw\s*(-%\}\s*|%\})`)
	rawEnd   = regexp.MustCompile(`\{%([-+]?)\s*endraw\s*(\+%\}|-%\}\s*|%\}\n?)`)
)

// raw reads {% raw %} ... {% endraw %} and reports whether there is one here.
func (l *lexer) raw() bool {
	start := len(rawStart.FindString(l.src[l.pos:]))
	if start == 0 {
		return false // avoid searching the remaining source for every block
	}
	body := l.src[l.pos+start:]
	end := rawEnd.FindStringSubmatchIndex(body)
	if end == nil {
		return false
	}
	l.pos += start
	text := body[:end[0]]
	switch body[end[2]:end[3]] {
	case "-":
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	case "":
		text = l.stripLine(text)
	}
	l.emit(tokText, text)
	l.pos += end[1]
	return true
}

// operators are sorted so that no operator hides a longer one.
var operators = []string{
	"//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=",
	"(", ")", "[", "]", "{", "}", ",", ":", ".", "|",
}

// block reads tokens up to the closing delimiter.
func (l *lexer) block(endKind tokenKind, end string) error {
	depth := 0
	for {
		l.pos = len(l.src) - len(strings.TrimLeftFunc(l.src[l.pos:], unicode.IsSpace))
		rest := l.src[l.pos:]
		if rest == "" {
			return l.errorf("%q is missing", end)
		}
		if depth == 0 {
			sign := byte(0)
			if (rest[0] == '-' || rest[0] == '+') && strings.HasPrefix(rest[1:], end) {
				sign = rest[0]
				rest = rest[1:]
			}
			if strings.HasPrefix(rest, end) {
				l.emit(endKind, "")
				l.pos = len(l.src) - len(rest) + len(end)
				l.after(sign == '-', sign == '+', endKind == tokStmtEnd)
				return nil
			}
		}
		op, err := l.one()
		if err != nil {
			return err
		}
		switch op {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		}
	}
}

// one reads one token. It returns the text of an operator, otherwise "".
func (l *lexer) one() (string, error) {
	rest := l.src[l.pos:]
	c, _ := utf8.DecodeRuneInString(rest)
	switch {
	case c == '\'' || c == '"':
		return "", l.quoted(byte(c))
	case c >= '0' && c <= '9':
		l.number()
		return "", nil
	case c == '_' || unicode.IsLetter(c):
		end := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if end < 0 {
			end = len(rest)
		}
		l.emit(tokName, rest[:end])
		l.pos += end
		return "", nil
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			l.emit(tokOp, op)
			l.pos += len(op)
			return op, nil
		}
	}
	return "", l.errorf("unexpected character %q", c)
}

func (l *lexer) number() {
	rest := l.src[l.pos:]
	digits := func(i int) int {
		for i < len(rest) && (rest[i] >= '0' && rest[i] <= '9' || rest[i] == '_') {
			i++
		}
		return i
	}
	end := digits(0)
	kind := tokInt
	if end+1 < len(rest) && rest[end] == '.' && rest[end+1] >= '0' && rest[end+1] <= '9' {
		kind = tokFloat
		end = digits(end + 1)
	}
	if end < len(rest) && (rest[end] == 'e' || rest[end] == 'E') {
		at := end + 1
		if at < len(rest) && (rest[at] == '+' || rest[at] == '-') {
			at++
		}
		if to := digits(at); to > at {
			kind = tokFloat
			end = to
		}
	}
	l.emit(kind, strings.ReplaceAll(rest[:end], "_", ""))
	l.pos += end
}

func (l *lexer) quoted(quote byte) error {
	var b strings.Builder
	for i := l.pos + 1; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case c == quote:
			l.emit(tokString, b.String())
			l.pos = i + 1
			return nil
		case c == '\\' && i+1 < len(l.src):
			i++
			i += writeEscape(&b, l.src[i:])
		default:
			b.WriteByte(c)
		}
	}
	return l.errorf("string is not closed")
}

// writeEscape writes the character for the escape s (without its backslash) and returns
// the number of bytes used after the first.
func writeEscape(b *strings.Builder, s string) int {
	if i := strings.IndexByte(`\'"abfnrtv0`, s[0]); i >= 0 {
		b.WriteByte("\\'\"\a\b\f\n\r\t\v\x00"[i])
		return 0
	}
	if n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]; n > 0 && len(s) > n {
		var r rune
		if _, err := fmt.Sscanf(s[1:1+n], "%x", &r); err == nil {
			b.WriteRune(r)
			return n
		}
	}
	b.WriteByte('\\')
	b.WriteByte(s[0])
	return 0
}
