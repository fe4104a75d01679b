package target

import "testing"

// Requests waiting for a connection that turns out to be HTTP/1 fail with a
// different text than the request that opened the connection.
func TestNoHTTP2(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP/1.1 header`,
		`http2: client conn could not be established`,
	} {
		if !noHTTP2(text) {
			t.Errorf("not taken for a server without HTTP/2: %s", text)
		}
	}
}
