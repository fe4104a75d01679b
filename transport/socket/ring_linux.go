package socket

// A ring passes arrivals from the receive thread to sort. Its pointers never change,
// because the receive thread must not write pointers.
type ring struct {
	head, tail int64 // arrivals put and arrivals sorted; accessed atomically
	base       int64 // number of the arrival at index 0; accessed atomically
	arrivals   []arrival
	bytes      []byte
	most       int // maximum size of one arrival
	next       int // offset of the bytes of the next arrival
}

// An arrival is the result of one receive: bytes, an error, or neither at the end of the
// stream. If events is set, the arrival is a set of epoll events other than EPOLLIN
// instead.
type arrival struct {
	at       int64 // the kernel's time; 0 is unknown
	polledAt int64
	empty    int64 // a time at which the socket held none of these bytes
	key
	events      uint32
	errno       uint32
	first, size int // range of ring.bytes
}

func newRing(arrivals, bytes, most int) ring {
	return ring{arrivals: make([]arrival, arrivals), bytes: make([]byte, bytes), most: most}
}

// room reports whether the ring has room for one more arrival. The bytes of an arrival are
// contiguous: if too few bytes are left at the end of the buffer, they start at offset 0.
// If all arrivals are sorted, the ring starts again at index 0, so that it stays in the
// CPU cache.
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
	oldest := r.at(tail).first
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

// nextArrival returns the arrival to fill before put.
//
//go:nosplit
//go:norace
func (r *ring) nextArrival() *arrival { return r.at(r.head) }

// at returns arrival number n, which must not be sorted yet.
//
//go:nosplit
//go:norace
func (r *ring) at(n int64) *arrival {
	return &r.arrivals[(n-load64(&r.base))%int64(len(r.arrivals))]
}

// put publishes the arrival that nextArrival returned.
//
//go:nosplit
//go:norace
func (r *ring) put(a *arrival) {
	a.first = r.next
	r.next += a.size
	store64(&r.head, r.head+1)
}
