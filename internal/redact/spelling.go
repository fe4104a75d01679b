package redact

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
)

// backslash matches a backslash, possibly percent-encoded several times.
const backslash = `(?:\\|%(?:25)*5[cC])`

// spellings matches a secret as it is and as escaped by URLs, JSON, Go and HTML, once or repeatedly.
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

// percent matches a percent-encoded character; %25 is an encoded percent sign.
func percent(char string) string {
	var b strings.Builder
	for _, c := range []byte(char) {
		fmt.Fprintf(&b, `%%(?:25)*(?i:%02x)`, c)
	}
	return b.String()
}

// unicodeEscape matches a character escaped by JSON or Go.
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
