package transport

import (
	"slices"
	"sync"
)

// largeBuffers are those that are larger. A flood goes through them
// again and again, and leaves no garbage.
var largeBuffers sync.Pool

// room makes room for a segment of n bytes.
func (c *polled) room(n int) {
	if c.box == nil {
		c.fill(c.poller.boxes.take(c.size))
	}
	need := len(c.data) + n
	for (need > cap(c.data) || len(c.segments) == cap(c.segments)) && c.size < boxSizes-1 {
		old := c.box
		c.size++
		c.fill(c.poller.boxes.take(c.size))
		c.poller.boxes.put(old)
	}
	if need <= cap(c.data) {
		return
	}
	larger, _ := largeBuffers.Get().(*[]byte)
	if larger == nil || cap(*larger) < need {
		b := make([]byte, 0, 2*need)
		larger = &b
	}
	old := c.data
	c.data = append((*larger)[:0], old...)
	c.box.letGo(old)
}

// fill moves what there is into a box that is larger than the one before.
func (c *polled) fill(b *box) {
	c.box, c.data, c.segments = b, append(b.data, c.data...), append(b.segments, c.segments...)
}

// letGo has others use a buffer, if it is not the box's own.
func (b *box) letGo(buffer []byte) {
	if cap(buffer) > cap(b.data) {
		large := buffer // only this is made where the collector sees it
		largeBuffers.Put(&large)
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
	if c.paused {
		c.paused = false
		if err := c.watch(); err != nil {
			c.err = err
		}
	}
	return p
}

// done lets others use what all handed over.
func (c *polled) done(p pieces) {
	if p.box != nil {
		p.box.letGo(p.data)
		c.poller.boxes.put(p.box)
	}
}

// unbox gives the box back though not all was read: of a connection that is closed
// perhaps nobody will read it, and the collector does not know boxes.
func (c *polled) unbox() {
	if c.box != nil {
		p := pieces{box: c.box, data: c.data}
		c.box, c.data, c.segments = nil, slices.Clone(c.data), slices.Clone(c.segments)
		c.done(p)
	}
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
