package transport

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tacho-bench/tacho/internal/limit"
)

// A bodyReader reads a body to its end.
type bodyReader struct {
	client  *Client
	tracker *tracker
	span    *span
	buffer  *buffer
	decoder chunkDecoder
	left    int64 // bytes still wanted; negative for all
	sink    Consumer
	live    func(p []byte, at int64)

	marked  bool         // the end mark of the events arrived
	close   func() error // closes the connection or the body
	limit   *time.Timer  // of the wait for the end of the body after the end mark
	expired atomic.Bool  // limit has closed the connection
}

// follow reads the body of a response to its end.
func (c *Client) follow(t *tracker, resp *http.Response, sink Consumer, live func(p []byte, at int64)) error {
	if resp.StatusCode < http.StatusOK {
		return nil // a response to an unrequested protocol switch is without a body
	}
	f := bodyReader{client: c, tracker: t, span: t.span.Load(), buffer: newBuffer(0), left: -1, sink: sink, live: live}
	defer func() { f.buffer.free() }()
	if resp.StatusCode != http.StatusOK {
		f.left = limit.ErrorBody
	}
	if t.h1 != nil && sink != nil {
		f.sink = pooledConsumer{sink, c, t.h1.h1Conn}
	}
	t.x.Sent = f.span.sendStart() // live needs the time
	if t.h1 != nil {
		f.close = t.h1.Close
	} else {
		f.close = func() error { t.cancel(); return nil } // Body.Close may wait for the rest
	}
	var err error
	if t.h1 != nil && resp.Body != http.NoBody && len(resp.TransferEncoding) > 0 {
		err = f.chunked()
	} else {
		err = f.plain(resp.Body)
	}
	if f.limit != nil {
		f.limit.Stop()
	}
	if err == io.EOF { //nolint:errorlint // bare: a wrapped one is a body that broke off
		t.bodyEnd(f.span)
		err = nil
	} else if f.expired.Load() {
		err = io.ErrUnexpectedEOF
	}
	return cmp.Or(f.buffer.flush(f.sink), err)
}

// plain reads a body through net/http until io.EOF.
func (f *bodyReader) plain(body io.Reader) error {
	for f.left != 0 {
		if err := f.room(); err != nil {
			return err
		}
		if f.tracker.h1 != nil && body != http.NoBody {
			if err := f.await(); err != nil {
				return err
			}
			f.tracker.h1.borrowBuffer()
		}
		f.limitEnd()
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

// chunked reads a chunked body from our own connection, bypassing net/http. It ends with
// io.EOF, as plain does.
func (f *bodyReader) chunked() error {
	r := f.tracker.h1
	here, _ := r.in.Peek(r.in.Buffered()) // bytes received with the head; cannot fail
	err := f.piece(here, f.span.latest())
	_, _ = r.in.Discard(len(here)) // cannot fail
	r.returnBuffer()
	for err == nil && f.left != 0 {
		if err = f.await(); err == nil {
			err = f.pieces()
		}
	}
	return err
}

// pieces reads all bytes received on the connection.
func (f *bodyReader) pieces() error {
	r := f.tracker.h1
	p, err := r.kernel.ReceiveAll()
	if err != nil {
		r.closedBy(err)
		return f.decoder.truncated(err)
	}
	for err == nil && f.left != 0 {
		piece, at, ok := p.Next()
		if !ok {
			break
		}
		err = f.piece(piece, f.span.received(at))
	}
	r.closing = r.closing || !p.Empty()
	p.Release()
	return err
}

// piece decodes one piece.
func (f *bodyReader) piece(p []byte, at Read) error {
	for len(p) > 0 && f.left != 0 {
		if err := f.room(); err != nil {
			return err
		}
		to := f.buffer.unused(f.left)
		n, used, err := f.decoder.take(to, p)
		if n > 0 {
			f.got(to[:n], at)
		}
		if err != nil {
			return err
		}
		p = p[used:]
		if f.decoder.done() {
			r := f.tracker.h1
			r.closing = r.closing || len(p) > 0 // unrequested bytes
			return io.EOF
		}
	}
	return nil
}

// got records bytes read into the buffer.
func (f *bodyReader) got(p []byte, at Read) {
	b := f.buffer
	b.data = b.data[:len(b.data)+len(p)]
	at.End = len(b.data)
	b.reads = append(b.reads, at)
	if f.left > 0 {
		f.left -= int64(len(p))
	}
	f.marked = f.marked || endsEvents(b.data)
	if f.live != nil {
		f.live(p, at.At)
	}
}

// room makes room for more of the body.
func (f *bodyReader) room() (err error) {
	if !f.buffer.full() {
		return nil
	}
	open := f.client.open.Load()
	most := bufferLimit(open)
	if open >= veryManyStreams {
		most = transientBuffer
	}
	f.buffer, err = f.buffer.room(most, f.sink)
	return err
}

// endsEvents reports whether p ends with the end mark of OpenAI's streams, as a line of its own.
func endsEvents(p []byte) bool {
	const mark, most = "[DONE]", len("data: [DONE]\r\n\r\n")
	p = p[max(0, len(p)-most):]
	line := bytes.TrimRight(p, "\r\n")
	return len(line) < len(p) && bytes.HasSuffix(line, []byte(mark)) && bytes.HasSuffix(bytes.TrimRight(line[:len(line)-len(mark)], " "), []byte("data:"))
}

// limitEnd closes the connection after endWait, if the end mark arrived.
func (f *bodyReader) limitEnd() {
	if f.marked && f.limit == nil {
		f.limit = time.AfterFunc(f.client.endWait, func() {
			f.expired.Store(true)
			_ = f.close() // the answer is complete
		})
	}
}

// await waits for more of the body. If very many streams are open, the stream keeps no
// buffer while it waits.
func (f *bodyReader) await() error {
	r := f.tracker.h1
	if !r.waits() {
		return nil
	}
	f.limitEnd()
	if f.client.open.Load() < veryManyStreams {
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
