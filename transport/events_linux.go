package transport

// These look at bytes for the thread that receives, too, and are nosplit and norace
// for it (see free).

// lastChunk ends an answer.
const lastChunk = "0\r\n\r\n"

// several says whether p seems to hold more than one event: more than one TLS
// record, or a blank line or the end of a chunk with more behind it. The head of an
// answer is none, nor is its end.
//
//go:nosplit
//go:norace
func several(p []byte) bool {
	if n := record(p); n > 0 {
		return n < len(p)
	}
	if begins(p, "HTTP/") {
		return false
	}
	for i := 1; i < len(p); i += 2 { // each second byte is one of any two
		if p[i] <= '\r' && (endsEvent(p[i-1:]) || endsEvent(p[i:])) {
			return true
		}
	}
	return false
}

// endsEvent says whether p begins with the end of an event, and has more behind it than
// the end of an answer.
//
//go:nosplit
//go:norace
func endsEvent(p []byte) bool {
	const blank, chunkEnd = "\n\n", "\n\r\n"
	return len(p) > len(chunkEnd+lastChunk) && begins(p, chunkEnd) ||
		len(p) > len(blank+"\r\n"+lastChunk) && begins(p, blank)
}

// record returns the length of the TLS record that p begins with, or 0 if p begins with
// none.
//
//go:nosplit
//go:norace
func record(p []byte) int {
	const header, firstType, lastType, version = 5, 20, 24, 3
	if len(p) <= header || p[0] < firstType || p[0] > lastType || p[1] != version {
		return 0
	}
	return header + int(p[3])<<8 + int(p[4])
}

// wholeEvents says whether p ends with a whole chunk that ends a line, as all events
// of a stream do and its last bytes do not.
//
//go:nosplit
//go:norace
func wholeEvents(p []byte) bool {
	n := len(p)
	if n < 4 || !begins(p[n-3:], "\n\r\n") {
		return false
	}
	return p[n-4] != '\r' || n >= 6 && begins(p[n-6:], "\r\n\r\n\r\n")
}

// bareHead says whether p is the head of a stream, and nothing else.
//
//go:nosplit
//go:norace
func bareHead(p []byte) bool {
	return begins(p, "HTTP/1.1 200 ") && index(p, "\r\n\r\n") == len(p)-4 && index(p, "chunked\r\n") >= 0
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
