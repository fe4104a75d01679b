package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxFileName is the maximum length of a file name in bytes on common file systems.
const MaxFileName = 255

// FileName makes a file name from untrusted text, such as a model's name. Letters, digits and . _ + = - stay. Everything
// else becomes a dash: separators, spaces, control characters, and marks of the writing direction. The name may start
// with a dot, and has at most MaxFileName bytes.
func FileName(s string) string {
	var b strings.Builder
	dashed := false
	for _, r := range s {
		ok := r != utf8.RuneError && (unicode.In(r, unicode.L, unicode.M, unicode.N) || strings.ContainsRune("._+=-", r))
		switch {
		case ok:
			b.WriteRune(r)
		case !dashed:
			b.WriteByte('-')
		}
		dashed = !ok
	}
	return Short(b.String())
}

// Short returns a file name of at most MaxFileName bytes. A longer name loses bytes in its middle, because its end has the
// date and the extension.
func Short(name string) string {
	const end = 80
	if len(name) <= MaxFileName {
		return name
	}
	const gap = "..."
	return strings.ToValidUTF8(name[:MaxFileName-end-len(gap)], "") + gap + strings.ToValidUTF8(name[len(name)-end:], "")
}
