package redact

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
)

// backslash is one, which others may escape in turn.
const backslash = `(?:\\|%(?:25)*5[cC])`

// spellings finds a secret as it is and as URLs, JSON, Go and HTML escape it,
// once or several times over.
func spellings(s string) *regexp.Regexp {
	var b strings.Builder
	for _, r := range s {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			b.WriteRune(r)
			continue
		}
		ways := []string{regexp.QuoteMeta(string(r)), percent(string(r)), fmt.Sprintf(`&#(?:0*%d|[xX]0*(?i:%x));`, r, r)}
		if names := map[rune]string{'&': `(?:amp;)+`, '<': `lt;`, '>': `gt;`, '"': `quot;`, '\'': `apos;`}; names[r] != "" {
			ways = append(ways, `&(?:amp;)*`+names[r])
		}
		if r == ' ' {
			ways = append(ways, `\+`, percent("+"))
		}
		b.WriteString("(?:" + backslash + "*(?:" + strings.Join(ways, "|") + ")|" + unicodeEscape(r) + ")")
	}
	return regexp.MustCompile(b.String())
}

// percent is a character as URLs write it; %25 is their percent sign.
func percent(char string) string {
	var b strings.Builder
	for _, c := range []byte(char) {
		fmt.Fprintf(&b, `%%(?:25)*(?i:%02x)`, c)
	}
	return b.String()
}

// unicodeEscape is a character as JSON and Go write it.
func unicodeEscape(r rune) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune{r}) {
		fmt.Fprintf(&b, `%s+u(?i:%04x)`, backslash, unit)
	}
	if r < 0x100 {
		fmt.Fprintf(&b, `|%s+x(?i:%02x)`, backslash, r)
	}
	return b.String()
}
