// Package sanitize makes untrusted text safe to print. Control characters can make a terminal hide a line,
// overwrite the line above, or change the writing direction. sanitize shows control characters as escapes.
package sanitize

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s with terminal control characters escaped. Line ends and tabs stay. Valid JSON stays valid and
// keeps its meaning, because JSON already escapes control characters below U+0020.
func Text(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || r == '\r' || controls(r) }) {
		return s
	}
	return escape(s, func(at string, r rune) bool {
		return r == '\r' && !strings.HasPrefix(at, "\r\n") || controls(r) || isByte(at, r) && at[0] < 0xa0 // C1 control characters of an eight-bit terminal
	})
}

// Line returns s on one line, with all unprintable characters escaped. Use Line for names and messages.
func Line(s string) string {
	return escape(s, func(at string, r rune) bool { return !unicode.IsPrint(r) || isByte(at, r) })
}

// controls reports whether r controls a terminal instead of printing.
func controls(r rune) bool {
	return unicode.IsControl(r) && !strings.ContainsRune("\r\n\t", r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// isByte reports whether the text starts with a byte of invalid UTF-8.
func isByte(at string, r rune) bool {
	_, size := utf8.DecodeRuneInString(at)
	return r == utf8.RuneError && size == 1
}

func escape(s string, unfit func(at string, r rune) bool) string {
	var b strings.Builder
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case !unfit(s[i:], r):
			b.WriteString(s[i : i+size])
		case isByte(s[i:], r):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == 0x7f: // Go's escape is not valid JSON
			b.WriteString(`\u007f`)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}
