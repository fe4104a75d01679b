// Package limit says how much is taken from a server at most: the bounds on
// what it can make us hold, all in one place.
package limit

import (
	"fmt"
	"unicode/utf8"
)

// The bounds.
const (
	Event  = 32 << 20  // bytes of a line, of an event, and of an answer in one document
	Answer = 32 << 20  // bytes of text in one answer, where it is kept
	Events = 1 << 20   // events with tokens in one answer
	Broken = 1000      // events in one answer that cannot be read
	Header = 256 << 10 // bytes of the header of an answer
	Page   = 2 << 20   // bytes of the answer to a question
	Tokens = 8 << 20   // bytes of the answer to how many tokens a text has: a list of a million of them is less
	Refuse = 64 << 10  // bytes of the body of a refusal that are read
)

// Text is how many bytes are kept of a name, a finish reason or a message.
const Text = 4 << 10

// An Error is something that passes its bound.
type Error struct{ what string }

func (e *Error) Error() string { return "the server sent " + e.what + ", and more is not taken" }

// Bytes is the error of something that has more bytes than its bound.
func Bytes(what string, bound int64) *Error {
	if bound < 1<<20 {
		return &Error{fmt.Sprintf("%s of more than %d KiB", what, bound>>10)}
	}
	return &Error{fmt.Sprintf("%s of more than %d MiB", what, bound>>20)}
}

// Count is the error of more things than their bound.
func Count(what string, bound int) *Error { return &Error{fmt.Sprintf("more than %d %s", bound, what)} }

// Clip is the first Text bytes of s. It cuts no character in two.
func Clip[T ~string | ~[]byte](s T) string {
	if len(s) <= Text {
		return string(s)
	}
	n := Text
	for n > Text-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return string(s[:n]) + "…"
}
