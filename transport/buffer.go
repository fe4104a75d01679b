package transport

import "sync"

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
