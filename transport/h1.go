package transport

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/limit"
	"github.com/tacho-bench/tacho/transport/socket"
)

const (
	// inlineRequest is the longest request that is written before its response is read.
	// The kernels of both ends have room for it even if the server does not read. A longer
	// request is written by another goroutine, because the response may arrive before its
	// end.
	inlineRequest = 32 << 10
	// h1BufferSize is the size of the read buffer of an h1Conn.
	h1BufferSize = 4 << 10
)

// An h1Pool holds the HTTP/1 connections of a client to its server, with and without TLS, if
// the receive thread serves them. One goroutine writes a request and reads its response. net/http has
// two more goroutines per connection, and every request passes through all three. That is
// most of the CPU time of a request and of the memory of a stream.
type h1Pool struct {
	connect func(context.Context, tacho.CallOptions) (*conn, error)
	spare   func() net.Conn // returns a connection dialled in advance, or nil

	idleTimeout time.Duration // idleTimeout; tests over sockets set a longer one

	hasIdle atomic.Bool // lets a thousand requests see without the lock that there are no idle connections

	mu     sync.Mutex
	idle   []idleH1 // the youngest last
	closed bool
}

type idleH1 struct {
	*h1Conn
	since int64
}

// An h1Conn is an HTTP/1 connection with a read buffer.
type h1Conn struct {
	*conn
	in     bufio.Reader
	lent   *bufio.Reader // owner of the buffer of in; nil without a buffer
	left   int64         // bytes left for the head
	body   bool          // the head is complete, so reads are unlimited
	broken error         // error that ended the head
}

// Read implements io.Reader for the buffered reader.
func (l *h1Conn) Read(p []byte) (int, error) {
	if l.body {
		return l.conn.Read(p)
	}
	if l.left <= 0 {
		l.broken = limit.Bytes("a head", limit.Header)
		return 0, l.broken
	}
	n, err := l.conn.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	if !errors.Is(err, io.EOF) { // EOF may only mean that the response is not HTTP
		l.broken = err
	}
	return n, err
}

// take returns a connection, and whether the connection was reused.
func (p *h1Pool) take(ctx context.Context, o tacho.CallOptions) (l *h1Conn, reused bool, err error) {
	if l := p.takeIdle(); l != nil {
		return l, true, nil
	}
	c, err := p.connect(ctx, o)
	if err != nil {
		return nil, false, err
	}
	return &h1Conn{conn: c}, false, nil
}

// tryTake is take without waiting. It returns nil if there is no connection.
func (p *h1Pool) tryTake() (l *h1Conn, reused bool) {
	if l := p.takeIdle(); l != nil {
		return l, true
	}
	if c := p.spare(); c != nil {
		return &h1Conn{conn: c.(*conn)}, false
	}
	return nil, false
}

// takeIdle returns an idle connection that can serve another request, or nil.
func (p *h1Pool) takeIdle() *h1Conn {
	for l := p.pop(); l.h1Conn != nil; l = p.pop() {
		if now()-l.since < int64(p.idleTimeout) && l.kernel.Quiet() {
			return l.h1Conn
		}
		if !socket.Alive(l.Conn) {
			l.keepAlive.cut(true) // no reader was there to notice it
		}
		l.discard() // the connection is old, or the server closed it or sent unrequested bytes
	}
	return nil
}

// readers is the pool of read buffers.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, h1BufferSize) }}

// await waits for bytes and returns the number received. The connection keeps no buffer
// during the wait, because usually thousands of connections wait. It is called at a
// shallow stack depth for the same reason.
func (l *h1Conn) await() int {
	l.returnBuffer()
	return l.kernel.Await()
}

// waits reports whether there is nothing to read.
func (l *h1Conn) waits() bool { return l.in.Buffered() == 0 && l.kernel.Waits() }

func (l *h1Conn) borrowBuffer() {
	if l.lent == nil {
		l.lent = readers.Get().(*bufio.Reader)
		l.in = *l.lent
		l.in.Reset(l)
	}
}

// returnBuffer returns the read buffer to the pool before a possible wait.
func (l *h1Conn) returnBuffer() {
	if l.lent != nil && l.in.Buffered() == 0 {
		l.in.Reset(nil)
		*l.lent, l.in = l.in, bufio.Reader{}
		readers.Put(l.lent)
		l.lent = nil
	}
}

// discard closes an idle connection.
func (l *h1Conn) discard() {
	if l.tls != nil {
		_, _ = l.kernel.Write(l.tls.closeNotify()) // the send buffer of an idle connection is empty
	}
	_ = l.Close() // no data is lost
}

// pop returns the youngest idle connection. Its h1Conn is nil if there is none.
func (p *h1Pool) pop() (l idleH1) {
	if !p.hasIdle.Load() {
		return l
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if top := len(p.idle) - 1; top >= 0 {
		l, p.idle[top] = p.idle[top], idleH1{}
		p.idle = p.idle[:top]
	}
	p.hasIdle.Store(len(p.idle) > 0)
	return l
}

// put keeps a connection for the next request, and closes connections idle for too long.
func (p *h1Pool) put(l *h1Conn) {
	at := now()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		l.discard()
		return
	}
	p.idle = append(p.idle, idleH1{l, at})
	p.hasIdle.Store(true)
	old := 0
	for old < len(p.idle) && at-p.idle[old].since > int64(p.idleTimeout) {
		old++
	}
	dropped := slices.Clone(p.idle[:old])
	p.idle = slices.Delete(p.idle, 0, old)
	p.mu.Unlock()
	for _, d := range dropped {
		d.discard()
	}
}

// drop closes idle connections. If last is true, it also closes connections put later.
func (p *h1Pool) drop(last bool) {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, p.closed || last
	p.mu.Unlock()
	for _, l := range idle {
		l.discard()
	}
}

// An h1Exchange is one request on an h1Conn.
type h1Exchange struct {
	*h1Conn
	pool    *h1Pool
	wrote   chan error  // result of a request written by another goroutine
	failed  error       // error of a request written inline
	stop    func() bool // stops watching the context
	closing bool        // either end wants to close the connection after the response
	whole   bool        // the response was read to its end
}

// roundTrip sends req on a connection and reads the response head. t owns the connection
// from then on, even after an error.
func (p *h1Pool) roundTrip(ctx context.Context, t *tracker, req *Request, last bool) (*http.Response, error) {
	t.x.Conns++
	t.x.Conn = 0
	l, reused, err := p.take(ctx, t.x.Options)
	if err != nil {
		return nil, err
	}
	t.x.Reused = reused
	// Other goroutines may be about to send, and go first.
	if err := p.begin(ctx, t, l, req, last, runtime.Gosched); err != nil {
		return nil, err
	}
	return p.head(t)
}

// begin sends req on a connection, and calls sent after the write.
func (p *h1Pool) begin(ctx context.Context, t *tracker, l *h1Conn, req *Request, last bool, sent func()) error {
	l.left, l.body = limit.Header, false
	t.attach(l.conn)
	t.h1 = &h1Exchange{h1Conn: l, pool: p, closing: last}
	t.h1.stop = afterFunc(ctx, func() { _ = l.Close() }) // ends every wait
	return t.h1.write(t, req.text(last), sent)
}

// head reads the response head.
func (*h1Pool) head(t *tracker) (*http.Response, error) {
	l := t.h1.h1Conn
	if l.waits() {
		l.await()
	}
	l.borrowBuffer()
	resp, err := l.readHead()
	if err != nil {
		return nil, cmp.Or(t.h1.failed, err)
	}
	if resp.Close || resp.StatusCode < http.StatusOK {
		t.h1.closing = true
	}
	return resp, nil
}

// afterFunc is context.AfterFunc, but uses the cheaper AfterFunc method of ctx if there is
// one.
func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if c, ok := ctx.(interface{ AfterFunc(func()) func() bool }); ok {
		return c.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}

// write writes a request when it is due. It keeps an error in failed, because the server
// may still respond with the reason.
func (r *h1Exchange) write(t *tracker, text []byte, sent func()) error {
	text, err := r.seal(text)
	if err != nil {
		return err
	}
	s, n := t.span.Load(), 0
	r.prepare(len(text), s, t.x.Options.RelaxedEnd)
	err = t.x.Options.Pass(func() {
		t.x.Conn = now()
		n = r.begin(text, s)
	})
	sent()
	r.kernel.Watch()
	if err != nil {
		return err
	}
	rest := func() (err error) {
		if n < len(text) {
			_, err = r.writeSealed(text[n:])
		}
		s.handedOver(err)
		return err
	}
	if len(text) <= inlineRequest {
		r.failed = rest()
		return nil
	}
	wrote := make(chan error, 1)
	r.wrote = wrote
	go func() { wrote <- rest() }()
	return nil
}

// streamHead returns the length and the content type of the head of a chunked response with
// status 200, or 0 if the head at the start of p is unusual. net/http reads unusual heads. It
// would read this head with the same result, but takes 4 % of the CPU time of a short request.
func streamHead(p []byte) (size int, contentType string) {
	const end = "\r\n\r\n"
	size = bytes.Index(p, []byte(end)) + len(end)
	if size < len(end) {
		return 0, ""
	}
	head, ok := bytes.CutPrefix(p[:size-len(end)], []byte("HTTP/1.1 200 OK\r\n"))
	chunked := 0
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		key, value, colon := bytes.Cut(line, []byte(": "))
		ok = ok && colon && len(key) > 0 && len(value) > 0 && value[0] != ' ' && value[len(value)-1] != ' ' &&
			!bytes.ContainsFunc(key, isNoKey) && !bytes.ContainsFunc(value, isNoValue)
		switch name := string(bytes.ToLower(key)); name {
		case "transfer-encoding":
			chunked++
			ok = ok && string(value) == "chunked"
		case "content-type":
			ok = ok && contentType == ""
			contentType = string(value)
		case "connection":
			ok = ok && bytes.EqualFold(value, []byte("keep-alive"))
		case "content-length", "content-encoding", "trailer", "upgrade":
			ok = false
		}
	}
	if !ok || chunked != 1 {
		return 0, ""
	}
	return size, contentType
}

func isNoKey(r rune) bool {
	return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

func isNoValue(r rune) bool { return r < ' ' || r > '~' }

// readHead reads the response head. Heads with status 1xx may come first, within the same
// size limit.
func (l *h1Conn) readHead() (*http.Response, error) {
	if _, err := l.in.Peek(1); err == nil {
		p, _ := l.in.Peek(l.in.Buffered()) // cannot fail
		if size, contentType := streamHead(p); size > 0 {
			_, _ = l.in.Discard(size) // cannot fail
			l.body = true
			head := http.Header{"Content-Type": {contentType}}
			return &http.Response{StatusCode: http.StatusOK, Header: head, TransferEncoding: []string{"chunked"}}, nil
		}
	}
	for {
		resp, err := http.ReadResponse(&l.in, nil)
		switch {
		case err != nil:
			return nil, cmp.Or(l.broken, err) // an incomplete line also looks malformed
		case resp.StatusCode < http.StatusContinue:
			return nil, fmt.Errorf("malformed HTTP status code %d", resp.StatusCode)
		case resp.StatusCode >= http.StatusOK || resp.StatusCode == http.StatusSwitchingProtocols:
			l.body = true
			return resp, nil
		}
	}
}

// end closes the connection unless it can serve another request. The caller returns it to
// the pool after reading its times.
func (r *h1Exchange) end(err error) (kept bool) {
	kept = err == nil && r.failed == nil && r.whole && !r.closing && r.in.Buffered() == 0
	if kept {
		r.returnBuffer()
	}
	if r.wrote != nil {
		select {
		case writeErr := <-r.wrote:
			kept = kept && writeErr == nil
		default: // the response arrived before the request was written
			kept = false
		}
	}
	kept = r.stop() && kept
	if !kept {
		_ = r.Close() // everything needed was read
	}
	return kept
}
