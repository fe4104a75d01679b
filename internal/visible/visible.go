// Package visible makes text of others fit to print. A terminal obeys control
// characters: it can be made to hide a line, to rewrite the one above, or to
// turn the direction of writing. Here they are shown as escapes instead.
package visible

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is s with everything that a terminal would obey made visible. Line ends
// and tabs stay. The escapes are such that JSON stays JSON and means the same:
// it has those below a blank escaped already.
func Text(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || r == '\r' || obeyed(r) }) {
		return s
	}
	return escape(s, func(at string, r rune) bool {
		return r == '\r' && !strings.HasPrefix(at, "\r\n") || obeyed(r) || isByte(at, r) && at[0] < 0xa0 // controls of an eight-bit terminal
	})
}

// Line is a name or a message of others on one line: everything that cannot be
// printed is made visible.
func Line(s string) string {
	return escape(s, func(at string, r rune) bool { return !unicode.IsPrint(r) || isByte(at, r) })
}

// obeyed says whether a terminal does something at r other than go on.
func obeyed(r rune) bool {
	return unicode.IsControl(r) && !strings.ContainsRune("\r\n\t", r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// isByte says whether the text begins with a byte that is no UTF-8.
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
		case r == 0x7f: // Go would write what is no JSON
			b.WriteString(`\u007f`)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}
