package transport

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// boxSizes is how many sizes of boxes there are: each is twice the one before.
	boxSizes = 5
	// smallestBox is the smallest, with all that is in it, and smallestSegments how
	// many segments that holds.
	smallestBox      = 640
	smallestSegments = 3
	// boxMemory is how much is asked of the kernel at a time.
	boxMemory = 1 << 20
)

// A box is what a connection needs while there is something in it. Connections
// share them: most of the time most have nothing.
type box struct {
	data     []byte // both are empty, and have all the room that there is
	segments []segment
	size     int
	next     *box // in boxes
}

// boxes are those of the connections of a poller. Its thread takes them without a
// lock, and from memory that Go's runtime knows nothing of. It must not wait: a thread
// that holds a lock may have lost its core to this one; and whoever asks for memory
// while garbage is collected has to help with that, which took up to 80 ms. A box may
// hold no pointer to anything but another box: the collector does not see it.
type boxes struct {
	returned atomic.Pointer[box] // by those who read

	// The rest is of the thread alone.
	free  [boxSizes]*box
	fresh []byte   // nobody has had it yet
	own   [][]byte // memory that the kernel did not give, so that it is kept
}

// take is an empty box of a size.
func (b *boxes) take(size int) *box {
	if b.free[size] == nil {
		b.collect()
	}
	one := b.free[size]
	if one == nil {
		return b.make(size)
	}
	b.free[size], one.next = one.next, nil
	return one
}

// collect takes back what was returned.
func (b *boxes) collect() {
	for one := b.returned.Swap(nil); one != nil; {
		next := one.next
		one.next, b.free[one.size] = b.free[one.size], one
		one = next
	}
}

// put returns a box. Anybody may.
func (b *boxes) put(one *box) {
	for {
		first := b.returned.Load()
		one.next = first
		if b.returned.CompareAndSwap(first, one) {
			return
		}
	}
}

// make makes a box.
func (b *boxes) make(size int) *box {
	n := smallestBox << size
	if len(b.fresh) < n { // what is left is small
		b.fresh = b.more()
	}
	chunk := b.fresh[:n:n]
	b.fresh = b.fresh[n:]
	one := (*box)(unsafe.Pointer(&chunk[0]))
	head := int(unsafe.Sizeof(*one))
	segments := unsafe.Slice((*segment)(unsafe.Pointer(&chunk[head])), smallestSegments<<size)
	head += len(segments) * int(unsafe.Sizeof(segments[0]))
	*one = box{data: chunk[head:head], segments: segments[:0], size: size}
	return one
}

// more is more memory.
func (b *boxes) more() []byte {
	p, err := unix.MmapPtr(-1, 0, nil, boxMemory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		own := make([]byte, boxMemory)
		b.own = append(b.own, own)
		return own
	}
	return unsafe.Slice((*byte)(p), boxMemory)
}

// retired are the boxes of pollers that are over, for those to come. Some may still be
// returned.
var retired struct {
	mu  sync.Mutex
	all []*boxes
}

// retire keeps boxes for another poller.
func retire(b *boxes) {
	retired.mu.Lock()
	retired.all = append(retired.all, b)
	retired.mu.Unlock()
}

// adopt is boxes that no poller has.
func adopt() *boxes {
	retired.mu.Lock()
	defer retired.mu.Unlock()
	top := len(retired.all) - 1
	if top < 0 {
		return new(boxes)
	}
	b := retired.all[top]
	retired.all = retired.all[:top]
	return b
}
