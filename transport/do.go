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
)

// Do sends req, once, and follows its response to the end. x says what
// happened, whether or not it went well; sink, which may be nil, gets the
// body, whatever the status; live, which may be nil, sees each piece of it at
// once, with the time at which it arrived, and must be quick. A request starts over on another connection if its
// first was one that the server had closed before it got a byte of it; x.Conns
// tells. Nothing else is tried again.
func (c *Client) Do(ctx context.Context, req *Request, x *Exchange, sink Consumer, live func(p []byte, at int64)) error {
	c.open.Add(1)
	t, resp, err := c.send(ctx, req, x)
	return c.conclude(ctx, t, resp, err, sink, live)
}

// Start is Do for a request that can be sent at once, on a connection that is there.
// It says whether it was sent. If so, then is called as soon as something of the
// answer has come, or never will: perhaps before Start returns, and it must not
// wait. What is left of Do is the finish that it is given. whole says whether the answer
// seems to be there to its end, so that finish hardly waits for anything.
func (c *Client) Start(ctx context.Context, req *Request, x *Exchange, sink Consumer, live func(p []byte, at int64), then func(finish func() error, whole bool)) bool {
	if c.lines == nil || len(req.bytes) > inlineRequest {
		return false
	}
	l, reused := c.lines.ready()
	if l == nil {
		return false
	}
	c.open.Add(1)
	t := &trail{x: x}
	x.Conns, x.Reused = x.Conns+1, reused
	err := c.lines.begin(ctx, t, l, req, !c.Keeps(), func() {})
	finish := func() error {
		var resp *http.Response
		if err == nil {
			resp, err = c.lines.head(t) //nolint:bodyclose // on a line there is nothing to close
		}
		if err != nil && c.startsOver(ctx, t, err) {
			t, resp, err = c.send(ctx, req, x) //nolint:bodyclose // conclude does
		}
		req = nil // a stream may be long
		return c.conclude(ctx, t, resp, err, sink, live)
	}
	l.kernel.tell(func(whole bool) { then(finish, whole) })
	return true
}

// conclude follows the response, if there is one, to its end.
func (c *Client) conclude(ctx context.Context, t *trail, resp *http.Response, err error, sink Consumer, live func(p []byte, at int64)) error {
	defer c.open.Add(-1)
	if err == nil {
		t.x.head(resp)
		err = c.follow(t, resp, sink, live)
		if t.ride == nil { // on a line it would wait for the rest
			_ = resp.Body.Close() // all that was wanted of it has been read
		}
		if err == nil && !resp.Close && t.conn != nil {
			t.conn.lease.answered()
		}
	}
	t.finish(err)
	return blameContext(ctx, err)
}

// send gets the head of a response. net/http itself starts over if it finds a
// connection closed before it has written to it; but a server that closes
// connections behind its answers is often only just about to.
func (c *Client) send(ctx context.Context, req *Request, x *Exchange) (*trail, *http.Response, error) {
	for {
		t := &trail{x: x}
		resp, err := c.roundTrip(ctx, t, req)
		if err == nil || !c.startsOver(ctx, t, err) {
			return t, resp, err
		}
	}
}

// startsOver says whether a request is to be sent again. Its connection is let go
// then.
func (c *Client) startsOver(ctx context.Context, t *trail, err error) bool {
	if ctx.Err() != nil || !t.untaken() {
		return false
	}
	t.hangUp(err)
	t.release()
	return true
}

// roundTrip tries one connection, or what net/http takes for one.
func (c *Client) roundTrip(ctx context.Context, t *trail, req *Request) (*http.Response, error) {
	if c.lines != nil {
		return c.lines.roundTrip(ctx, t, req, !c.Keeps())
	}
	if err := t.x.Options.Pass(func() {}); err != nil {
		return nil, err
	}
	attempt := req.http.WithContext(httptrace.WithClientTrace(ctx, t.hooks()))
	attempt.Close = req.http.Close || !c.Keeps()
	if attempt.GetBody != nil {
		attempt.Body, _ = attempt.GetBody() // it is in memory, and cannot fail
	}
	return c.transport.RoundTrip(attempt)
}

// bodyRead describes a read of the body that began at a time and has just returned. An
// HTTP/2 body was received for us by another goroutine: all that is known is now, and
// whether this read waited while the other goroutine was not late.
func (s *span) bodyRead(began int64) Read {
	if !s.shared {
		return s.latest()
	}
	r := readStamp(began)
	r.waited = r.waited && (s.under == nil || s.under.lateAt.Load() < began)
	return s.received(r)
}

// bodyEnd notes that the body ended well: over HTTP/1 with the last receive,
// over HTTP/2 perhaps with a frame of its own.
func (t *trail) bodyEnd(s *span) {
	if s.shared {
		s.received(stamp{at: now()})
	}
	if t.ride != nil {
		t.ride.whole = true
	}
}

// blameContext gives ctx as the reason for err where it is: net/http reports
// the cause of the end of a context, or the connection it closed over it.
func blameContext(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	if errors.Is(err, context.Cause(ctx)) || errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

// A trail follows one request through net/http.
type trail struct {
	x      *Exchange
	trying bool // a connection was asked for and not got yet
	conn   *conn
	ride   *ride                // nil where net/http has the connection
	span   atomic.Pointer[span] // of the connection tried last; hooks of the writing goroutine look for it
}

// hooks are called by net/http: GetConn and GotConn in the goroutine of Do,
// the others in any.
func (t *trail) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) {
			if t.trying { // HTTP/2 without TLS: asked of the pool, and again of the connection
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
				s.received(stamp{at: now()})
			}
		},
	}
}

// handedOver notes that net/http is done with writing the request.
func (s *span) handedOver(err error) {
	if s.shared {
		s.written(err)
	}
	s.mu.Lock()
	s.whole = err == nil
	s.mu.Unlock()
}

// attach makes this exchange the owner of its connection.
func (t *trail) attach(nc net.Conn) {
	c := connUnder(nc)
	s := newSpan(c == nil || c.multiplexed(nc))
	s.under = c
	t.span.Store(s)
	if !s.shared {
		t.conn = c
		c.own(s)
	}
}

// untaken says whether the server had closed the connection, which was there
// before, when it had got nothing of this request.
func (t *trail) untaken() bool {
	s := t.span.Load()
	if t.conn == nil || t.x.Conn == 0 { // it was never to be sent
		return false
	}
	return (t.x.Reused || t.conn.spare && t.x.Conns == 1) && s.silent() && (t.conn.lease.untaken(s.before) || t.conn.lease.wrote.Load() == s.before)
}

// release ends the ownership: what comes now is not ours.
func (t *trail) release() {
	if t.conn != nil {
		t.conn.owner.CompareAndSwap(t.span.Load(), nil)
	}
	t.conn = nil
	t.span.Store(nil)
}

// hangUp lets go of the line, if there is one, unless it is good for another
// request.
func (t *trail) hangUp(err error) (keep *line) {
	r := t.ride
	t.ride = nil
	if r == nil || !r.end(err) {
		return nil
	}
	return r.line
}

func (t *trail) finish(err error) {
	x, ride := t.x, t.ride
	if t.conn != nil && t.conn.kernel != nil {
		x.Retransmits, x.OutOfOrder = t.conn.kernel.troubles()
	}
	keep := t.hangUp(err)
	if s := t.span.Load(); s != nil {
		if err == nil {
			s.settle()
		}
		s.fill(x)
		t.leave(s)
		x.End = s.latest().At
	}
	if err != nil || x.End == 0 {
		x.End = now()
	}
	t.release()
	if keep != nil {
		ride.lines.put(keep)
	}
}

// leave takes the times of sending from the network device, where they were seen,
// or else from the kernel. The kernel tells when the last byte of the first write
// left: if that was within the write, so did the first byte.
func (t *trail) leave(s *span) {
	x := t.x
	if t.conn == nil || t.conn.kernel == nil || x.Sent == 0 {
		return
	}
	left, after := s.leaving(t.conn)
	if left > x.SentBy {
		x.SentBy = left
	} else if left >= x.Sent {
		x.Sent, x.SentBy = left, left
	}
	if x.Wrote == 0 {
		return
	}
	if first, last, ok := t.conn.kernel.left(uint64(s.before), uint64(after)); ok {
		x.Sent, x.SentBy, x.Wrote, x.Left = first, first, last, true
	}
}

// multiplexed says whether nc, which is c or TLS over it, speaks HTTP/2.
func (c *conn) multiplexed(nc net.Conn) bool {
	if tc, ok := nc.(*tls.Conn); ok {
		return negotiatedHTTP2(tc)
	}
	return c.h2c
}

// negotiatedHTTP2 is on its own because the state it asks for is large: inlined
// into what every request calls at its deepest, it would cost each stream
// another doubling of its stack.
//
//go:noinline
func negotiatedHTTP2(tc *tls.Conn) bool { return tc.ConnectionState().NegotiatedProtocol == "h2" }
