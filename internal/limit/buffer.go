package limit

import "sync"

// blockSize is the size above which a Buffer switches to blocks. Almost no line or event is longer.
const blockSize = 256 << 10

// blocks recycles blocks, so a server that floods the client costs only the memory in use at one time.
var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}

// A Buffer collects bytes until a line or an event is complete. A large Buffer grows by blocks: growing copies
// nothing and leaves no garbage. The zero value is an empty Buffer.
type Buffer struct {
	small []byte
	large []*[blockSize]byte
	used  int // bytes in the last block
}

// Len returns the number of bytes in the buffer.
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

// Take returns the buffered bytes as one slice and empties the buffer. The slice is valid until the next Add.
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

// filled returns the number of bytes in block i.
func (b *Buffer) filled(i int) int {
	if i == len(b.large)-1 {
		return b.used
	}
	return blockSize
}
