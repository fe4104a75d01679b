package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/tacho-bench/tacho/transport/socket"
)

// Do sends req once and reads its response to the end. It fills x even if it fails. sink
// gets the body, whatever the status; live gets each piece of the body immediately, with
// its arrival time, and must be quick. Both may be nil. If the server had closed a reused
// connection before it received a byte of the request, Do sends the request again on
// another connection and counts it in x.Conns. Do retries nothing else.
func (c *Client) Do(ctx context.Context, req *Request, x *Exchange, sink Consumer, live func(p []byte, at int64)) error {
	c.open.Add(1)
	t, resp, err := c.send(ctx, req, x)
	return c.conclude(ctx, t, resp, err, sink, live)
}

// Start is Do for a request that can be sent immediately on an existing connection. It
// reports whether it sent the request. If so, it calls then once bytes of the response
// have arrived, or cannot arrive any more, perhaps before Start returns. then must not
// wait. finish does the rest of Do. whole reports whether the response seems complete, so
// that finish hardly waits.
func (c *Client) Start(ctx context.Context, req *Request, x *Exchange, sink Consumer, live func(p []byte, at int64), then func(finish func() error, whole bool)) bool {
	if c.h1 == nil || len(req.bytes) > inlineRequest {
		return false
	}
	l, reused := c.h1.tryTake()
	if l == nil {
		return false
	}
	c.open.Add(1)
	t := &tracker{x: x, cancel: func() {}}
	x.Conns, x.Reused = x.Conns+1, reused
	err := c.h1.begin(ctx, t, l, req, !c.Keeps(), func() {})
	finish := func() error {
		var resp *http.Response
		if err == nil {
			resp, err = c.h1.head(t) //nolint:bodyclose // on a line there is nothing to close
		}
		if err != nil && c.shouldRetry(ctx, t, err) {
			t, resp, err = c.send(ctx, req, x) //nolint:bodyclose // conclude does
		}
		req = nil // frees the request during a long stream
		return c.conclude(ctx, t, resp, err, sink, live)
	}
	l.kernel.Tell(func(whole bool) { then(finish, whole) })
	return true
}

// conclude reads the response, if there is one, to its end.
func (c *Client) conclude(ctx context.Context, t *tracker, resp *http.Response, err error, sink Consumer, live func(p []byte, at int64)) error {
	defer c.open.Add(-1)
	defer t.cancel()
	if err == nil {
		t.x.head(resp)
		err = c.follow(t, resp, sink, live)
		if t.h1 == nil { // closing the body of our own connection would wait for the rest
			_ = resp.Body.Close() // the body was read as far as needed
		}
		if err == nil && !resp.Close && t.conn != nil {
			t.conn.keepAlive.answered()
		}
	}
	t.finish(err)
	return withContextError(ctx, err)
}

// send sends the request and returns the response head. net/http retries if it finds a
// connection closed before writing to it. But a server that closes connections
// after its responses may do so just after the write.
func (c *Client) send(ctx context.Context, req *Request, x *Exchange) (*tracker, *http.Response, error) {
	for {
		t := &tracker{x: x, cancel: func() {}}
		resp, err := c.roundTrip(ctx, t, req)
		if err == nil || !c.shouldRetry(ctx, t, err) {
			return t, resp, err
		}
	}
}

// shouldRetry reports whether to send the request again, and releases its connection if
// so.
func (c *Client) shouldRetry(ctx context.Context, t *tracker, err error) bool {
	if ctx.Err() != nil || !t.unreceived() {
		return false
	}
	t.detach(err)
	t.release()
	t.cancel()
	return true
}

// roundTrip tries one connection, or several if net/http retries.
func (c *Client) roundTrip(ctx context.Context, t *tracker, req *Request) (*http.Response, error) {
	if c.h1 != nil {
		return c.h1.roundTrip(ctx, t, req, !c.Keeps())
	}
	if err := t.x.Options.Pass(func() {}); err != nil {
		return nil, err
	}
	ctx, t.cancel = context.WithCancel(ctx)
	attempt := req.http.WithContext(httptrace.WithClientTrace(ctx, t.hooks()))
	attempt.Close = req.http.Close || !c.Keeps()
	if attempt.GetBody != nil {
		attempt.Body, _ = attempt.GetBody() // GetBody reads from memory and cannot fail
	}
	return c.transport.RoundTrip(attempt)
}

// bodyRead returns the Read for a read of the body that began at began. In HTTP/2 another
// goroutine received the bytes, so only the current time is known, and whether this read
// waited while the other goroutine was not late.
func (s *span) bodyRead(began int64) Read {
	if !s.shared {
		return s.latest()
	}
	r := readStamp(began)
	r.Waited = r.Waited && (s.under == nil || s.under.lateAt.Load() < began)
	return s.received(r)
}

// bodyEnd records the end of the body: in HTTP/1 the last receive, in HTTP/2 perhaps a
// separate frame.
func (t *tracker) bodyEnd(s *span) {
	if s.shared {
		s.received(socket.Stamp{At: now()})
	}
	if t.h1 != nil {
		t.h1.whole = true
	}
}

// withContextError adds the error of ctx to err if ctx caused err. net/http returns the
// cause of the context, or the error of the connection it closed.
func withContextError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	if errors.Is(err, context.Cause(ctx)) || errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

// A tracker records one request.
type tracker struct {
	x      *Exchange
	trying bool // net/http is getting a connection
	conn   *conn
	h1     *h1Exchange          // nil if net/http manages the connection
	cancel context.CancelFunc   // ends the request of net/http
	span   atomic.Pointer[span] // of the last connection tried; hooks of the writing goroutine load it
}

// hooks returns the hooks for net/http, which calls GetConn and GotConn in the goroutine
// of Do, and the others in any goroutine.
func (t *tracker) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) {
			if t.trying { // in HTTP/2 without TLS, net/http calls GetConn for the pool and again for the connection
				return
			}
			t.trying = true
			t.x.Conns++
			t.x.Conn = 0
			t.release()
		},
		GotConn: func(info httptrace.GotConnInfo) {
			t.trying = false
			t.x.Conn = now()
			t.x.Reused = info.Reused
			t.attach(info.Conn)
		},
		WroteHeaders: func() {
			if s := t.span.Load(); s != nil && s.shared {
				s.writing()
			}
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if s := t.span.Load(); s != nil {
				s.handedOver(info.Err)
			}
		},
		GotFirstResponseByte: func() {
			if s := t.span.Load(); s != nil && s.shared {
				s.received(socket.Stamp{At: now()})
			}
		},
	}
}

// handedOver notes that net/http wrote the request.
func (s *span) handedOver(err error) {
	if s.shared {
		s.written(err)
	}
	s.mu.Lock()
	s.whole = err == nil
	s.mu.Unlock()
}

// attach makes this exchange the owner of its connection.
func (t *tracker) attach(nc net.Conn) {
	c := connUnder(nc)
	s := newSpan(c == nil || c.multiplexed(nc))
	s.under = c
	t.span.Store(s)
	if !s.shared {
		t.conn = c
		c.own(s)
	}
}

// unreceived reports whether the server had closed a reused or spare connection without
// receiving a byte of this request.
func (t *tracker) unreceived() bool {
	s := t.span.Load()
	if t.conn == nil || t.x.Conn == 0 { // the request was not due yet
		return false
	}
	return (t.x.Reused || t.conn.spare && t.x.Conns == 1) && s.silent() && (t.conn.keepAlive.unreceived(s.before) || t.conn.keepAlive.wrote.Load() == s.before)
}

// release ends the ownership of the connection.
func (t *tracker) release() {
	if t.conn != nil {
		t.conn.owner.CompareAndSwap(t.span.Load(), nil)
	}
	t.conn = nil
	t.span.Store(nil)
}

// detach releases the connection, and returns it if it can serve another request.
func (t *tracker) detach(err error) (keep *h1Conn) {
	r := t.h1
	t.h1 = nil
	if r == nil || !r.end(err) {
		return nil
	}
	return r.h1Conn
}

func (t *tracker) finish(err error) {
	x, h1 := t.x, t.h1
	if t.conn != nil && t.conn.kernel != nil {
		x.Retransmits, x.OutOfOrder = t.conn.kernel.Counters()
	}
	keep := t.detach(err)
	if s := t.span.Load(); s != nil {
		if err == nil {
			s.awaitWrites()
		}
		s.fill(x)
		t.fillSendTimes(s)
		x.End = s.latest().At
	}
	if err != nil || x.End == 0 {
		x.End = now()
	}
	t.release()
	if keep != nil {
		h1.pool.put(keep)
	}
}

// fillSendTimes takes the send times from the network device if it saw them, or else from
// the kernel. The kernel reports when the last byte of the first write left. If that was
// during the write, the first byte also left during the write.
func (t *tracker) fillSendTimes(s *span) {
	x := t.x
	if t.conn == nil || t.conn.kernel == nil || x.Sent == 0 {
		return
	}
	left, after := s.sendTimes(t.conn)
	if left > x.SentBy {
		x.SentBy = left
	} else if left >= x.Sent {
		x.Sent, x.SentBy = left, left
	}
	if x.Wrote == 0 {
		return
	}
	if first, last, ok := t.conn.kernel.Left(uint64(s.before), uint64(after)); ok {
		x.Sent, x.SentBy, x.Wrote, x.Left = first, first, last, true
	}
}

// multiplexed reports whether nc, which is c or TLS over c, speaks HTTP/2.
func (c *conn) multiplexed(nc net.Conn) bool {
	if tc, ok := nc.(*tls.Conn); ok {
		return negotiatedHTTP2(tc)
	}
	return c.h2c
}

// negotiatedHTTP2 is not inlined because the TLS state is large: at the deepest call of a
// request it would double the stack of each stream.
//
//go:noinline
func negotiatedHTTP2(tc *tls.Conn) bool { return tc.ConnectionState().NegotiatedProtocol == "h2" }
