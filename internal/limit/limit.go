// Package limit defines upper bounds for the data tacho accepts from a server, so no server can exhaust the
// client's memory.
package limit

import (
	"fmt"
	"unicode/utf8"
)

// Bounds on a single response.
const (
	Event     = 32 << 20  // bytes of a line, an event, or a response in one document
	Answer    = 32 << 20  // bytes of stored text per response
	Events    = 1 << 20   // events with tokens per response
	Calls     = 1000      // tool calls kept per response
	BadEvents = 1000      // unreadable events per response
	Header    = 256 << 10 // bytes of a response header
	Page      = 2 << 20   // bytes of a response to a metadata query
	Tokens    = 8 << 20   // bytes of a tokenizer response: a list of a million tokens is smaller
	ErrorBody = 64 << 10  // bytes read from the body of an error response
)

// Text is the maximum number of bytes stored of a name, a finish reason or a message.
const Text = 4 << 10

// Error reports data from the server beyond one of the bounds.
type Error struct{ what string }

func (e *Error) Error() string { return "the server sent " + e.what + ", more than tacho accepts" }

// Bytes returns the Error for data longer than bound bytes.
func Bytes(what string, bound int64) *Error {
	if bound < 1<<20 {
		return &Error{fmt.Sprintf("%s of more than %d KiB", what, bound>>10)}
	}
	return &Error{fmt.Sprintf("%s of more than %d MiB", what, bound>>20)}
}

// Count returns the Error for more than bound items.
func Count(what string, bound int) *Error { return &Error{fmt.Sprintf("more than %d %s", bound, what)} }

// Clip shortens s to at most Text bytes plus an ellipsis, without splitting a UTF-8 sequence.
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
