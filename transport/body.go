package transport

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"runtime"
	"sync"
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

const (
	// smallestBuffer is the initial buffer of a stream. Usually thousands of streams wait,
	// so a waiting stream must be cheap.
	smallestBuffer = 1 << 10
	// largestBuffer is how many bytes of one body are kept before they go to the Consumer.
	largestBuffer = 64 << 10
	// bufferBudget is how many bytes all open streams together may keep. If more than 256
	// streams are open, each gets less than largestBuffer.
	bufferBudget = 16 << 20
	// leastRoom is the least free space worth a read.
	leastRoom = 512
	// bytesPerRead sets the capacity of buffer.reads relative to buffer.data. An event of
	// a token stream is longer.
	bytesPerRead = 128

	bufferSizes = 7 // 1, 2, 4, 8, 16, 32, 64 KiB
	// transientBuffer is the largest buffer of a stream that keeps a buffer only while it
	// reads. The bytes held in a connection fit into it.
	transientBuffer = 8 << 10
)

// A buffer is a part of a body and its reads.
type buffer struct {
	data  []byte
	reads []Read
	size  int // index into bufferPools
}

// bufferPools has one pool per size, so that a new stream gets a small buffer even if
// large buffers are free.
var bufferPools [bufferSizes]sync.Pool

func newBuffer(size int) *buffer {
	if b, ok := bufferPools[size].Get().(*buffer); ok {
		return b
	}
	n := smallestBuffer << size
	return &buffer{data: make([]byte, 0, n), reads: make([]Read, 0, n/bytesPerRead), size: size}
}

// sizeFor returns the size index of a transient buffer for n bytes. Thousands of streams
// may wait for the decoder, each with a buffer, so buffers are as small as possible.
func sizeFor(n int) (size int) {
	for n+leastRoom > smallestBuffer<<size && smallestBuffer<<size < transientBuffer {
		size++
	}
	return size
}

func (b *buffer) free() {
	b.clear()
	bufferPools[b.size].Put(b)
}

func (b *buffer) clear() { b.data, b.reads = b.data[:0], b.reads[:0] }

func (b *buffer) full() bool {
	return cap(b.data)-len(b.data) < leastRoom || len(b.reads) == cap(b.reads)
}

// room returns a buffer with room for another read: b itself, a larger buffer with the
// same contents, or, if that would exceed limit, an empty buffer after the contents have
// gone to sink.
func (b *buffer) room(limit int, sink Consumer) (*buffer, error) {
	if !b.full() {
		return b, nil
	}
	if 2*cap(b.data) <= limit {
		larger := newBuffer(b.size + 1)
		larger.data = append(larger.data, b.data...)
		larger.reads = append(larger.reads, b.reads...)
		b.free()
		return larger, nil
	}
	err := b.flush(sink)
	if cap(b.data) > limit { // more streams are open than when the buffer grew
		b.free()
		return newBuffer(0), err
	}
	return b, err
}

// unused returns the free part of the buffer, limited to most bytes unless most is
// negative.
func (b *buffer) unused(most int64) []byte {
	to := b.data[len(b.data):cap(b.data)]
	if most >= 0 && most < int64(len(to)) {
		to = to[:most]
	}
	return to
}

// flush passes the contents to sink and returns its error.
func (b *buffer) flush(sink Consumer) (err error) {
	if len(b.data) > 0 && sink != nil {
		err = sink.Consume(b.data, b.reads)
	}
	b.clear()
	return err
}

// bufferLimit returns how many bytes each of open streams may keep.
func bufferLimit(open int64) int {
	return int(min(largestBuffer, max(smallestBuffer, bufferBudget/max(open, 1))))
}

const (
	// manyStreams is the number of open streams above which each must be cheap.
	manyStreams = 512
	// veryManyStreams is the number of open streams above which each may keep hardly more
	// undecoded bytes than its connection holds anyway.
	veryManyStreams = 4096
)

// A workerPool runs Consumers on a few goroutines. Decoding needs a deep stack, and a
// stream that decodes on its own goroutine would keep the stack until its end. If
// thousands of streams end at once, a few decoding goroutines leave the CPUs to receiving.
type workerPool struct {
	mu          sync.Mutex
	first, last *task // queue
	free        *task
	working     int
}

// A task is one call of a Consumer.
type task struct {
	sink  Consumer
	data  []byte
	reads []Read
	err   error
	done  chan struct{}
	next  *task
}

// pooledConsumer runs a Consumer on the worker pool if many streams are open.
type pooledConsumer struct {
	Consumer
	client *Client
	h1Conn *h1Conn
}

// Consume implements Consumer.
func (m pooledConsumer) Consume(data []byte, reads []Read) error {
	if m.client.open.Load() < manyStreams {
		return m.Consumer.Consume(data, reads)
	}
	m.h1Conn.returnBuffer()
	return m.client.workers.consume(m.Consumer, data, reads)
}

// consume queues a call of sink and waits for its result.
func (c *workerPool) consume(sink Consumer, data []byte, reads []Read) error {
	c.mu.Lock()
	e := c.free
	if e == nil {
		e = &task{done: make(chan struct{}, 1)}
	} else {
		c.free = e.next
	}
	e.sink, e.data, e.reads, e.next = sink, data, reads, nil
	if c.first == nil {
		c.first = e
	} else {
		c.last.next = e
	}
	c.last = e
	if c.working < runtime.NumCPU() {
		c.working++
		go c.work()
	}
	c.mu.Unlock()
	<-e.done
	err := e.err
	c.mu.Lock()
	*e = task{done: e.done, next: c.free}
	c.free = e
	c.mu.Unlock()
	return err
}

// work runs tasks until the queue is empty.
func (c *workerPool) work() {
	for {
		c.mu.Lock()
		e := c.first
		if e == nil {
			c.working--
			c.mu.Unlock()
			return
		}
		c.first = e.next
		c.mu.Unlock()
		e.err = e.sink.Consume(e.data, e.reads)
		e.done <- struct{}{}
	}
}
