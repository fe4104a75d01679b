package transport

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// A tlsCodec is the connection below a tls.Conn. During the handshake it reads and writes
// the socket. From then on it is memory, so that the tls.Conn never waits: records received
// are decrypted as they arrive, without waking the reader, and records of a request are
// encrypted before it is due.
type tlsCodec struct {
	net.Conn // as long as tls is nil
	tls      *tls.Conn

	// The next fields belong to the reader: the handshake, then Decode.
	in     []byte // received and not decrypted
	ended  bool
	header []byte // of the current record
	left   int    // bytes left of the current record

	mu  sync.Mutex
	out []byte // encrypted and not taken by seal
}

// start ends the handshake of t. The connection it returns reads and writes through t.
func (l *tlsCodec) start(t *tls.Conn) *conn {
	c := l.Conn.(*conn)
	l.tls, c.tls = t, l
	c.kernel.Decode(l)
	return c
}

// minPlaintext is the least room for decrypted bytes.
const minPlaintext = 512

// Decode implements socket.Decoder. It also handles session tickets and key updates. A
// record that is incomplete stays in the tls.Conn, which can read on after a timeout.
func (l *tlsCodec) Decode(dst, p []byte) (decoded []byte, used int, err error) {
	used = l.record(p)
	l.in, l.ended = p[:used], len(p) == 0
	for err == nil {
		dst = slices.Grow(dst, minPlaintext)
		var n int
		n, err = l.tls.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
	}
	if err == os.ErrDeadlineExceeded { //nolint:errorlint // from Read below
		err = nil
	}
	return dst, used, err
}

// record returns how many bytes of p belong to the current record.
func (l *tlsCodec) record(p []byte) int {
	const header = 5
	n := 0
	if l.left == 0 {
		n = min(header-len(l.header), len(p))
		if l.header = append(l.header, p[:n]...); len(l.header) < header {
			return n
		}
		l.left = int(l.header[3])<<8 | int(l.header[4])
		l.header = l.header[:0]
	}
	body := min(l.left, len(p)-n)
	l.left -= body
	return n + body
}

// seal returns the records of p, after records that the tls.Conn made in between.
func (l *tlsCodec) seal(p []byte) ([]byte, error) {
	_, err := l.tls.Write(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	sealed := l.out
	l.out = nil
	return sealed, err
}

// closeNotify returns the records that tell the peer that nothing follows.
func (l *tlsCodec) closeNotify() []byte {
	_ = l.tls.CloseWrite() // to memory
	sealed, _ := l.seal(nil)
	return sealed
}

// Read implements net.Conn.
func (l *tlsCodec) Read(p []byte) (int, error) {
	switch {
	case l.tls == nil:
		n, err := l.Conn.Read(p)
		for seen := 0; seen < n; {
			seen += l.record(p[seen:n])
		}
		return n, err
	case len(l.in) > 0:
		n := copy(p, l.in)
		l.in = l.in[n:]
		return n, nil
	case l.ended:
		return 0, io.EOF
	}
	return 0, os.ErrDeadlineExceeded
}

// Write implements net.Conn. A key update or an alert waits for the next request, because
// the records of a request may be partly written.
func (l *tlsCodec) Write(p []byte) (int, error) {
	if l.tls == nil {
		return l.Conn.Write(p)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = append(l.out, p...)
	return len(p), nil
}

// SetWriteDeadline implements net.Conn. Writes to memory do not wait.
func (l *tlsCodec) SetWriteDeadline(t time.Time) error {
	if l.tls == nil {
		return l.Conn.SetWriteDeadline(t)
	}
	return nil
}
