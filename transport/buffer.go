package transport

import "sync"

const (
	// smallestBuffer is what a stream starts with: most of the time thousands
	// of streams wait, and a waiting stream must be cheap.
	smallestBuffer = 1 << 10
	// largestBuffer is how much of one body is kept before it is handed over.
	largestBuffer = 64 << 10
	// bufferBudget is how much all open streams together may keep; beyond 256
	// of them each gets less than largestBuffer.
	bufferBudget = 16 << 20
	// leastRoom is the smallest stretch worth a read.
	leastRoom = 512
	// bytesPerRead sizes the list of reads by the data it belongs to: an event
	// of a token stream is longer than this.
	bytesPerRead = 128

	bufferSizes = 7 // 1, 2, 4, 8, 16, 32, 64 KiB
	// passingBuffer is the largest buffer that is had only while there is
	// something to read: what a connection holds fits in.
	passingBuffer = 8 << 10
)

// A buffer is a stretch of a body and the reads it came in.
type buffer struct {
	data  []byte
	reads []Read
	size  int // index of its size
}

// bufferPools has one pool for each size, so that a stream which begins gets a
// small buffer even when large ones have been freed.
var bufferPools [bufferSizes]sync.Pool

func newBuffer(size int) *buffer {
	if b, ok := bufferPools[size].Get().(*buffer); ok {
		return b
	}
	n := smallestBuffer << size
	return &buffer{data: make([]byte, 0, n), reads: make([]Read, 0, n/bytesPerRead), size: size}
}

// sizeFor is the size of a passing buffer for n bytes. Thousands of streams may wait
// for their turn to be decoded, each with its buffer, so none is larger than it must be.
func sizeFor(n int) (size int) {
	for n+leastRoom > smallestBuffer<<size && smallestBuffer<<size < passingBuffer {
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

// room returns a buffer with room for another read: b itself, a larger one
// with the same contents, or, where that would pass limit, an empty one after
// the contents have gone to sink.
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
	if cap(b.data) > limit { // more streams are open than when it grew
		b.free()
		return newBuffer(0), err
	}
	return b, err
}

// unused is the rest of it, or so many bytes of that where most is not negative.
func (b *buffer) unused(most int64) []byte {
	to := b.data[len(b.data):cap(b.data)]
	if most >= 0 && most < int64(len(to)) {
		to = to[:most]
	}
	return to
}

// flush hands the contents to sink, and says what it says.
func (b *buffer) flush(sink Consumer) (err error) {
	if len(b.data) > 0 && sink != nil {
		err = sink.Consume(b.data, b.reads)
	}
	b.clear()
	return err
}

// bufferLimit is what one of open streams may keep.
func bufferLimit(open int64) int {
	return int(min(largestBuffer, max(smallestBuffer, bufferBudget/max(open, 1))))
}
