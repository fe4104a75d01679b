package transport

import "sync"

// keptBuffer is the largest buffer that connections share.
const keptBuffer = 4 << 10

// A box is what a connection needs while there is something in it. Connections
// share them: most of the time most have nothing.
type box struct {
	data     []byte
	segments []segment
}

// boxes are those of the connections of a poller that nobody needs now. A
// sync.Pool would lose them with every collection of garbage, and with them the
// size that they have grown to.
type boxes struct {
	mu   sync.Mutex
	free []*box
}

func (b *boxes) take() *box {
	b.mu.Lock()
	defer b.mu.Unlock()
	top := len(b.free) - 1
	if top < 0 {
		return new(box)
	}
	one := b.free[top]
	b.free = b.free[:top]
	return one
}

func (b *boxes) put(one *box) {
	b.mu.Lock()
	b.free = append(b.free, one)
	b.mu.Unlock()
}

// largeBuffers are those that are larger. A flood goes through them
// again and again, and leaves no garbage.
var largeBuffers sync.Pool

// room makes room for n bytes more.
func (c *polled) room(n int) {
	need := len(c.data) + n
	if need <= max(cap(c.data), keptBuffer) {
		return
	}
	larger, _ := largeBuffers.Get().(*[]byte)
	if larger == nil || cap(*larger) < need {
		b := make([]byte, 0, 2*need)
		larger = &b
	}
	old := c.data
	c.data = append((*larger)[:0], old...)
	letGo(old)
}

// letGo has others use a buffer that is too large to be kept.
func letGo(b []byte) {
	if cap(b) > keptBuffer {
		largeBuffers.Put(&b)
	}
}

// pieces are what came in some receives, and the connection has handed over.
type pieces struct {
	box      *box
	data     []byte
	segments []segment
	read     int // of data
	seen     int // of segments
}

// next waits for something to read, and hands all of it over. It comes back by done.
func (c *polled) next() (pieces, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ready(); err != nil {
		return pieces{}, err
	}
	return c.all(), nil
}

// all hands over what there is. Where that was too much, it goes on to receive.
func (c *polled) all() pieces {
	p := pieces{c.box, c.data, c.segments, c.read, c.seen}
	c.box, c.data, c.segments, c.read, c.seen = nil, nil, nil, 0, 0
	c.due = false
	if c.paused && !c.closed { // or the seat may be another's
		c.paused = false
		c.seat.set(seatPaused, false)
		if err := c.watch(); err != nil {
			c.err = err
		}
	}
	return p
}

// done lets others use what all handed over.
func (c *polled) done(p pieces) {
	if cap(p.data) > keptBuffer {
		letGo(p.data)
		return
	}
	*p.box = box{p.data[:0], p.segments[:0]}
	c.poller.boxes.put(p.box)
}

// each calls take with each piece, or as much of it as has a time of its own, until
// that wants no more. It says whether it had all.
func (c *polled) each(p pieces, take func(piece []byte, at stamp) (more bool)) (all bool) {
	for _, s := range p.segments[p.seen:] {
		for p.read < s.end {
			n, at := s.end-p.read, s.stamp
			if c.wire != nil {
				n, at = c.wire.first(n, at)
				c.wire.read += uint64(n)
			}
			piece := p.data[p.read : p.read+n]
			if p.read += n; !take(piece, at) {
				return p.read == len(p.data)
			}
		}
	}
	return true
}
