package socket

import (
	"sync"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/transport/socket/tap"
)

// keptBuffer is the capacity of the largest buffer in a bufferPool.
const keptBuffer = 4 << 10

// A segment is the result of one receive.
type segment struct {
	end int    // offset in conn.data
	raw uint64 // if the bytes are decoded: number of bytes received up to here
	Stamp
}

// A buffer holds the received bytes of a connection and their segments. Connections share
// buffers, because most connections are empty most of the time.
type buffer struct {
	data     []byte
	segments []segment
}

// A bufferPool holds the unused buffers of a poller's connections. A sync.Pool would drop
// the buffers at every garbage collection, and with them the sizes they have grown to.
type bufferPool struct {
	mu   sync.Mutex
	free []*buffer
}

func (b *bufferPool) take() *buffer {
	b.mu.Lock()
	defer b.mu.Unlock()
	top := len(b.free) - 1
	if top < 0 {
		return new(buffer)
	}
	one := b.free[top]
	b.free = b.free[:top]
	return one
}

func (b *bufferPool) put(one *buffer) {
	b.mu.Lock()
	b.free = append(b.free, one)
	b.mu.Unlock()
}

// largeBuffers holds buffers larger than keptBuffer. A flood of bytes reuses them and
// leaves no garbage.
var largeBuffers sync.Pool

// recycle puts a buffer into largeBuffers if it is too large for a bufferPool.
func recycle(b []byte) {
	if cap(b) > keptBuffer {
		largeBuffers.Put(&b)
	}
}

// Pieces are the bytes of one or more receives, with their times.
type Pieces struct {
	buffer     *buffer
	data       []byte
	segments   []segment
	read       int // offset in data
	seen       int // index in segments
	bufferPool *bufferPool
	wire       *wire
}

// Next returns the next piece. A piece ends where the arrival time changes.
func (p *Pieces) Next() (piece []byte, at Stamp, ok bool) {
	for p.seen < len(p.segments) && p.read == p.segments[p.seen].end {
		p.seen++
	}
	if p.seen == len(p.segments) {
		return nil, Stamp{}, false
	}
	s := p.segments[p.seen]
	n, at := s.end-p.read, s.Stamp
	if p.wire != nil {
		n, at = p.wire.take(n, s)
	}
	piece = p.data[p.read : p.read+n]
	p.read += n
	return piece, at, true
}

// Empty reports whether Next returned all pieces.
func (p *Pieces) Empty() bool { return p.read == len(p.data) }

// Release returns the buffer to the pool. Pieces must not be used after Release.
func (p *Pieces) Release() {
	if cap(p.data) > keptBuffer {
		recycle(p.data)
		return
	}
	*p.buffer = buffer{p.data[:0], p.segments[:0]}
	p.bufferPool.put(p.buffer)
}

// A wire is a connection as seen at the network device. Only the reader of the connection
// uses it.
type wire struct {
	conn *tap.Conn
	read uint64 // bytes read so far
}

// take returns how many of the next n bytes of s have the same time, and their time.
func (w *wire) take(n int, s segment) (int, Stamp) {
	if s.raw == 0 {
		n, at := w.first(n, s.Stamp)
		w.read += uint64(n)
		return n, at
	}
	// Decoded bytes are usable when the last byte of their record arrives.
	w.read = max(w.read, s.raw-1)
	_, at := w.first(1, s.Stamp)
	return n, at
}

// first splits a receive of n bytes with stamp s. It returns the number of bytes in the
// first segment and the time of that segment. If the tap missed the segment, first returns
// n and s unchanged.
func (w *wire) first(n int, s Stamp) (int, Stamp) {
	end, at, ok := w.conn.In.At(w.read + 1)
	had := s.At + int64(s.Lag)
	if !ok || at > s.At { // If at is later than s.At, the tap saw only a retransmitted segment: the socket already had the bytes.
		w.conn.In.Skip(w.read + uint64(n))
		return n, s
	}
	if end-w.read >= uint64(n) {
		w.conn.In.Forget(w.read)
	}
	return int(min(uint64(n), end-w.read)), Stamp{At: at, Lag: tacho.SaturatedNanos(time.Duration(had - at)), Kernel: true, Wire: true}
}
