package transport

import (
	"cmp"
	"io"
	"net/http"

	"tacho/internal/limit"
)

// A following is the reading of a body, to its end.
type following struct {
	client *Client
	trail  *trail
	span   *span
	buffer *buffer
	chunks chunks
	left   int64 // bytes that are still wanted; negative is all
	sink   Consumer
	live   func(p []byte, at int64)
}

// follow reads the body of a response to its end.
func (c *Client) follow(t *trail, resp *http.Response, sink Consumer, live func(p []byte, at int64)) error {
	if resp.StatusCode < http.StatusOK {
		return nil // a change of protocol that nobody asked for: what follows is no body
	}
	f := following{client: c, trail: t, span: t.span.Load(), buffer: newBuffer(0), left: -1, sink: sink, live: live}
	defer func() { f.buffer.free() }()
	if resp.StatusCode != http.StatusOK {
		f.left = limit.Refuse
	}
	if t.ride != nil && sink != nil {
		f.sink = manned{sink, c, t.ride.line}
	}
	t.x.Sent = f.span.begun() // for live
	var err error
	if t.ride != nil && resp.Body != http.NoBody && len(resp.TransferEncoding) > 0 {
		err = f.chunked()
	} else {
		err = f.plain(resp.Body)
	}
	if err == io.EOF { //nolint:errorlint // bare: a wrapped one is a body that broke off
		t.bodyEnd(f.span)
		err = nil
	}
	return cmp.Or(f.buffer.flush(f.sink), err)
}

// plain reads a body as net/http gives it. That ends with io.EOF.
func (f *following) plain(body io.Reader) error {
	for f.left != 0 {
		if err := f.room(); err != nil {
			return err
		}
		if f.trail.ride != nil && body != http.NoBody {
			if err := f.await(); err != nil {
				return err
			}
			f.trail.ride.borrow()
		}
		to := f.buffer.unused(f.left)
		began := now()
		n, err := body.Read(to)
		if n > 0 {
			f.got(to[:n], f.span.bodyRead(began))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// chunked reads a body that comes in chunks on a line, past net/http. It ends as
// plain does.
func (f *following) chunked() error {
	r := f.trail.ride
	here, _ := r.in.Peek(r.in.Buffered()) // what came with the head; it cannot fail
	err := f.piece(here, f.span.latest())
	_, _ = r.in.Discard(len(here)) // nor can this
	r.giveBack()
	for err == nil && f.left != 0 {
		if err = f.await(); err == nil {
			err = f.pieces()
		}
	}
	return err
}

// pieces reads what has come on a line.
func (f *following) pieces() error {
	r := f.trail.ride
	p, err := r.kernel.next()
	if err != nil {
		r.closedBy(err)
		return f.chunks.cut(err)
	}
	all := r.kernel.each(p, func(piece []byte, at stamp) bool {
		err = f.piece(piece, f.span.received(at))
		return err == nil && f.left != 0
	})
	r.kernel.done(p)
	r.closing = r.closing || !all
	return err
}

// piece reads one of them.
func (f *following) piece(p []byte, at Read) error {
	for len(p) > 0 && f.left != 0 {
		if err := f.room(); err != nil {
			return err
		}
		to := f.buffer.unused(f.left)
		n, used, err := f.chunks.take(to, p)
		if n > 0 {
			f.got(to[:n], at)
		}
		if err != nil {
			return err
		}
		p = p[used:]
		if f.chunks.over() {
			r := f.trail.ride
			r.closing = r.closing || len(p) > 0 // that nobody asked for
			return io.EOF
		}
	}
	return nil
}

// got notes what was read into the buffer.
func (f *following) got(p []byte, at Read) {
	b := f.buffer
	b.data = b.data[:len(b.data)+len(p)]
	at.End = len(b.data)
	b.reads = append(b.reads, at)
	if f.left > 0 {
		f.left -= int64(len(p))
	}
	if f.live != nil {
		f.live(p, at.At)
	}
}

// room makes room for more of a body.
func (f *following) room() (err error) {
	if !f.buffer.full() {
		return nil
	}
	open := f.client.open.Load()
	most := bufferLimit(open)
	if open >= multitude {
		most = passingBuffer
	}
	f.buffer, err = f.buffer.room(most, f.sink)
	return err
}

// await waits for more of a body, on a line. Where very many do, none of them keeps
// a buffer meanwhile.
func (f *following) await() error {
	r := f.trail.ride
	if !r.waits() {
		return nil
	}
	if f.client.open.Load() < multitude {
		r.await()
		return nil
	}
	if err := f.buffer.flush(f.sink); err != nil {
		return err
	}
	f.buffer.free()
	f.buffer = newBuffer(sizeFor(r.await()))
	return nil
}
