package limit

import "sync"

// blockSize is where a Buffer goes over to blocks: almost nothing is longer.
const blockSize = 256 << 10

// blocks are used again, so that a server that floods costs no more memory than
// what is held at one time.
var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}

// A Buffer holds bytes until they are complete. Where they are many it neither
// copies them to grow, nor leaves garbage behind. The zero value is empty.
type Buffer struct {
	small []byte
	large []*[blockSize]byte
	used  int // of the last block
}

// Len is how many bytes are held.
func (b *Buffer) Len() int {
	if len(b.large) == 0 {
		return len(b.small)
	}
	return len(b.small) + (len(b.large)-1)*blockSize + b.used
}

// Add appends a copy of p.
func (b *Buffer) Add(p []byte) {
	if len(b.large) == 0 && len(b.small)+len(p) <= blockSize {
		b.small = append(b.small, p...)
		return
	}
	for len(p) > 0 {
		if len(b.large) == 0 || b.used == blockSize {
			b.large, b.used = append(b.large, blocks.Get().(*[blockSize]byte)), 0
		}
		n := copy(b.large[len(b.large)-1][b.used:], p)
		b.used += n
		p = p[n:]
	}
}

// Take returns all that is held, in one piece, and empties the buffer. The bytes
// are valid until the next Add.
func (b *Buffer) Take() []byte {
	all := b.small
	if len(b.large) > 0 {
		all = make([]byte, 0, b.Len())
		all = append(all, b.small...)
		for i, block := range b.large {
			all = append(all, block[:b.filled(i)]...)
		}
	}
	b.Drop()
	return all
}

// Drop empties the buffer.
func (b *Buffer) Drop() {
	for _, block := range b.large {
		blocks.Put(block)
	}
	b.small, b.large, b.used = b.small[:0], nil, 0
}

// filled is how much of a block is in use.
func (b *Buffer) filled(i int) int {
	if i == len(b.large)-1 {
		return b.used
	}
	return blockSize
}
