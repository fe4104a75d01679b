// Package framing classifies received bytes without parsing them: whole events of a
// stream, a bare response head, the end of a response, TLS records. The receive thread
// calls these functions, so they are nosplit and norace: see
// transport/socket/free_linux.go.
package framing

// LastChunk ends a chunked response.
const LastChunk = "0\r\n\r\n"

// Several reports whether p seems to contain more than one event: more than one TLS
// record, or bytes after a blank line or after the end of a chunk. The head and the end of
// a response do not count as events.
//
//go:nosplit
//go:norace
func Several(p []byte) bool {
	if n := Record(p); n > 0 {
		return n < len(p)
	}
	if Head(p) {
		return false
	}
	for i := 1; i < len(p); i += 2 { // every pair of adjacent bytes contains one with an odd index
		if p[i] <= '\r' && (endsEvent(p[i-1:]) || endsEvent(p[i:])) {
			return true
		}
	}
	return false
}

// endsEvent reports whether p begins with the end of an event and continues with more than
// the end of a response.
//
//go:nosplit
//go:norace
func endsEvent(p []byte) bool {
	const blank, chunkEnd = "\n\n", "\n\r\n"
	return len(p) > len(chunkEnd+LastChunk) && begins(p, chunkEnd) ||
		len(p) > len(blank+"\r\n"+LastChunk) && begins(p, blank)
}

// Record returns the length of the TLS record at the start of p, or 0 if there is none.
//
//go:nosplit
//go:norace
func Record(p []byte) int {
	const header, firstType, lastType, version = 5, 20, 24, 3
	if len(p) <= header || p[0] < firstType || p[0] > lastType || p[1] != version {
		return 0
	}
	return header + int(p[3])<<8 + int(p[4])
}

// WholeEvents reports whether p ends with a complete chunk that ends with a newline. All
// events of a stream do; the last chunk does not.
//
//go:nosplit
//go:norace
func WholeEvents(p []byte) bool {
	n := len(p)
	if n < 4 || !begins(p[n-3:], "\n\r\n") {
		return false
	}
	return p[n-4] != '\r' || n >= 6 && begins(p[n-6:], "\r\n\r\n\r\n")
}

// BareHead reports whether p is the head of a chunked response without a body.
//
//go:nosplit
//go:norace
func BareHead(p []byte) bool {
	return begins(p, "HTTP/1.1 200 ") && index(p, "\r\n\r\n") == len(p)-4 && index(p, "chunked\r\n") >= 0
}

// Head reports whether p begins with the head of a response.
//
//go:nosplit
//go:norace
func Head(p []byte) bool { return begins(p, "HTTP/") }

// Last reports whether p begins with the last chunk of a response.
//
//go:nosplit
//go:norace
func Last(p []byte) bool { return begins(p, LastChunk) }

// EndsResponse reports whether p seems to end a response.
func EndsResponse(p []byte) bool {
	const end = "\r\n" + LastChunk
	return len(p) >= len(end) && begins(p[len(p)-len(end):], end)
}

//go:nosplit
//go:norace
func begins(p []byte, with string) bool {
	if len(p) < len(with) {
		return false
	}
	for i := range len(with) {
		if p[i] != with[i] {
			return false
		}
	}
	return true
}

//go:nosplit
//go:norace
func index(p []byte, of string) int {
	for i := 0; i+len(of) <= len(p); i++ {
		k := 0
		for k < len(of) && p[i+k] == of[k] {
			k++
		}
		if k == len(of) {
			return i
		}
	}
	return -1
}
