package transport

import (
	"bufio"
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

	"tacho"
	"tacho/internal/limit"
)

const (
	// inlineRequest is the longest request that is written before the answer is
	// looked for: the kernels of both ends have room for it even if the server does
	// not read. A longer one is written beside, for an answer may come before its end.
	inlineRequest = 32 << 10
	// lineBufferSize is how much is read from a line at a time.
	lineBufferSize = 4 << 10
)

// lines are the plain HTTP/1 connections of a client to its server, where a
// poller receives for them. One goroutine writes a request and reads its answer.
// net/http has two more for each connection and sends every request through all
// three: that is most of what a request costs, and of what a stream holds.
type lines struct {
	connect func(context.Context, tacho.CallOptions) (*conn, error)
	spare   func() net.Conn // a connection that was made before, or nil

	idleTimeout time.Duration // the constant; tests over sockets set a longer one

	some atomic.Bool // there are idle ones: a thousand requests at once need not queue up to see that there are none

	mu     sync.Mutex
	idle   []idleLine // the youngest last
	closed bool
}

type idleLine struct {
	*line
	since int64
}

// A line is a connection with what has been read of it and not been used.
type line struct {
	*conn
	in     bufio.Reader
	lent   *bufio.Reader // in is this one's buffer; nil while it has none
	left   int64         // bytes that may still come of a head
	body   bool          // the head is over: what comes has no bound here
	broken error         // what ended the reading of a head
}

// Read is for the buffered reader.
func (l *line) Read(p []byte) (int, error) {
	if l.body {
		return l.conn.Read(p)
	}
	if l.left <= 0 {
		l.broken = limit.Bytes("a head", limit.Header)
		return 0, l.broken
	}
	n, err := l.conn.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	if !errors.Is(err, io.EOF) { // which may be the end of something that is no head
		l.broken = err
	}
	return n, err
}

// take returns a line, and whether it has served another request.
func (ls *lines) take(ctx context.Context, o tacho.CallOptions) (l *line, reused bool, err error) {
	if l := ls.quiet(); l != nil {
		return l, true, nil
	}
	c, err := ls.connect(ctx, o)
	if err != nil {
		return nil, false, err
	}
	return &line{conn: c}, false, nil
}

// ready is take without a wait; nil where there is none.
func (ls *lines) ready() (l *line, reused bool) {
	if l := ls.quiet(); l != nil {
		return l, true
	}
	if c := ls.spare(); c != nil {
		return &line{conn: c.(*conn)}, false
	}
	return nil, false
}

// quiet is an idle line that is good for another request; nil where there is none.
func (ls *lines) quiet() *line {
	for l := ls.pop(); l.line != nil; l = ls.pop() {
		if now()-l.since < int64(ls.idleTimeout) && l.kernel.quiet() {
			return l.line
		}
		if !alive(l.Conn) {
			l.lease.cut(true) // nobody was reading, to notice it
		}
		_ = l.Close() // it is old, or the server has closed it, or said something that nobody asked for
	}
	return nil
}

// readers lend their buffers to lines that read.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, lineBufferSize) }}

// await waits for something to read, and says how many bytes have come. The line
// has no buffer meanwhile: most of the time thousands of lines wait. It is called
// from where a goroutine needs little of its stack, for the same reason.
func (l *line) await() int {
	l.giveBack()
	return l.kernel.await()
}

// waits says whether there is nothing to read.
func (l *line) waits() bool { return l.in.Buffered() == 0 && l.kernel.waits() }

func (l *line) borrow() {
	if l.lent == nil {
		l.lent = readers.Get().(*bufio.Reader)
		l.in = *l.lent
		l.in.Reset(l)
	}
}

// giveBack is called where the line may have to wait.
func (l *line) giveBack() {
	if l.lent != nil && l.in.Buffered() == 0 {
		l.in.Reset(nil)
		*l.lent, l.in = l.in, bufio.Reader{}
		readers.Put(l.lent)
		l.lent = nil
	}
}

// pop is the youngest idle line; its line is nil where there is none.
func (ls *lines) pop() (l idleLine) {
	if !ls.some.Load() {
		return l
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if top := len(ls.idle) - 1; top >= 0 {
		l, ls.idle[top] = ls.idle[top], idleLine{}
		ls.idle = ls.idle[:top]
	}
	ls.some.Store(len(ls.idle) > 0)
	return l
}

// put keeps a line for the next request, and closes those that nobody wanted
// for long.
func (ls *lines) put(l *line) {
	at := now()
	ls.mu.Lock()
	if ls.closed {
		ls.mu.Unlock()
		_ = l.Close() // nothing is lost with it
		return
	}
	ls.idle = append(ls.idle, idleLine{l, at})
	ls.some.Store(true)
	old := 0
	for old < len(ls.idle) && at-ls.idle[old].since > int64(ls.idleTimeout) {
		old++
	}
	dropped := slices.Clone(ls.idle[:old])
	ls.idle = slices.Delete(ls.idle, 0, old)
	ls.mu.Unlock()
	for _, d := range dropped {
		_ = d.Close() // as above
	}
}

// drop closes what is idle, and with last what comes back later, too.
func (ls *lines) drop(last bool) {
	ls.mu.Lock()
	idle := ls.idle
	ls.idle, ls.closed = nil, ls.closed || last
	ls.mu.Unlock()
	for _, l := range idle {
		_ = l.Close() // nothing is lost with it
	}
}

// A ride is a request's time on a line.
type ride struct {
	*line
	lines   *lines
	wrote   chan error  // of a body that is written beside
	failed  error       // of the write of another
	stop    func() bool // ends the watch over the context
	closing bool        // one of both ends wants the line closed behind the answer
	whole   bool        // the answer was read to its end
}

// roundTrip sends req on a line and reads the head of its answer. The line is
// t's from then on, whatever comes of it.
func (ls *lines) roundTrip(ctx context.Context, t *trail, req *Request, last bool) (*http.Response, error) {
	t.x.Conns++
	t.x.Conn = 0
	l, reused, err := ls.take(ctx, t.x.Options)
	if err != nil {
		return nil, err
	}
	t.x.Reused = reused
	// Others may be about to send: they come first.
	if err := ls.begin(ctx, t, l, req, last, runtime.Gosched); err != nil {
		return nil, err
	}
	return ls.head(t)
}

// begin sends req on a line. sent is called when it was written.
func (ls *lines) begin(ctx context.Context, t *trail, l *line, req *Request, last bool, sent func()) error {
	l.left, l.body = limit.Header, false
	l.kernel.hurry(!t.x.Options.Unhurried)
	t.attach(l.conn)
	t.ride = &ride{line: l, lines: ls, closing: last}
	t.ride.stop = afterFunc(ctx, func() { _ = l.Close() }) // which ends every wait
	return t.ride.write(t, req.text(last), sent)
}

// head reads the head of the answer.
func (*lines) head(t *trail) (*http.Response, error) {
	l := t.ride.line
	if l.waits() {
		l.await()
	}
	l.borrow()
	resp, err := l.readHead()
	if err != nil {
		return nil, cmp.Or(t.ride.failed, err)
	}
	if resp.Close || resp.StatusCode < http.StatusOK {
		t.ride.closing = true
	}
	return resp, nil
}

// afterFunc is context.AfterFunc, but cheap where the context itself has one.
func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if c, ok := ctx.(interface{ AfterFunc(func()) func() bool }); ok {
		return c.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}

// write writes a request when it is due. What goes wrong with that is kept: even
// then there may be an answer that says why.
func (r *ride) write(t *trail, text []byte, sent func()) error {
	s, n := t.span.Load(), 0
	r.hide(len(text), s)
	err := t.x.Options.Pass(func() {
		t.x.Conn = now()
		n = r.begin(text, s)
	})
	sent()
	r.kernel.look()
	if err != nil {
		return err
	}
	rest := func() (err error) {
		if n < len(text) {
			_, err = r.Write(text[n:])
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

// readHead reads up to the body of an answer. Heads of status 1xx may come before
// its own, within the same bound.
func (l *line) readHead() (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(&l.in, nil)
		switch {
		case err != nil:
			return nil, cmp.Or(l.broken, err) // half a line is malformed, too, but that is not why
		case resp.StatusCode < http.StatusContinue:
			return nil, fmt.Errorf("malformed HTTP status code %d", resp.StatusCode)
		case resp.StatusCode >= http.StatusOK || resp.StatusCode == http.StatusSwitchingProtocols:
			l.body = true
			return resp, nil
		}
	}
}

// end closes the line unless another request may have it. The caller puts it
// back once the stamps were taken.
func (r *ride) end(err error) (kept bool) {
	kept = err == nil && r.failed == nil && r.whole && !r.closing && r.in.Buffered() == 0
	if kept {
		r.giveBack()
	}
	if r.wrote != nil {
		select {
		case writeErr := <-r.wrote:
			kept = kept && writeErr == nil
		default: // the answer came before the request was written
			kept = false
		}
	}
	kept = r.stop() && kept
	if !kept {
		_ = r.Close() // what was wanted of it has been read
	}
	return kept
}
