package transport

// A ring is between the thread that receives and those who sort what it received. It
// has no pointers that change: the thread may not write one.
type ring struct {
	head, tail int64 // how many arrivals there were, and how many of these were sorted: both atomically
	base       int64 // the one that is the first of arrivals, or was: atomically
	arrivals   []arrival
	bytes      []byte
	most       int // bytes that one arrival may have
	next       int // where its bytes begin
}

// An arrival is what one receive brought: bytes, an error or, without either, the
// end. Or it is what the kernel told of a socket besides that it can be read.
type arrival struct {
	at       int64 // the kernel's time of it; 0 is none
	polledAt int64
	empty    int64 // when nothing of it lay in the socket
	key
	told        uint32
	errno       uint32
	first, size int // in ring.bytes
}

func newRing(arrivals, bytes, most int) ring {
	return ring{arrivals: make([]arrival, arrivals), bytes: make([]byte, bytes), most: most}
}

// room says whether there is room for one more arrival. Its bytes lie together: where
// too few are left at the end, they begin anew. When all was sorted, they and the
// arrivals do so as well, and stay in the processor's cache.
//
//go:nosplit
//go:norace
func (r *ring) room() bool {
	tail := load64(&r.tail)
	if r.head == tail {
		r.next = 0
		store64(&r.base, tail)
		return true
	}
	if r.head-tail >= int64(len(r.arrivals)) {
		return false
	}
	oldest := r.number(tail).first
	switch {
	case r.next < oldest:
		return r.next+r.most < oldest
	case r.next+r.most <= len(r.bytes):
		return true
	case r.most < oldest:
		r.next = 0
		return true
	}
	return false
}

// last is where the next arrival is noted, for put.
//
//go:nosplit
//go:norace
func (r *ring) last() *arrival { return r.number(r.head) }

// number is the arrival with a number, if it was not sorted yet.
//
//go:nosplit
//go:norace
func (r *ring) number(n int64) *arrival {
	return &r.arrivals[(n-load64(&r.base))%int64(len(r.arrivals))]
}

// put hands an arrival over.
//
//go:nosplit
//go:norace
func (r *ring) put(a *arrival) {
	a.first = r.next
	r.next += a.size
	store64(&r.head, r.head+1)
}
