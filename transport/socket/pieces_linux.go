package socket

// grow makes room for n more bytes.
func (c *conn) grow(n int) {
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
	recycle(old)
}

// ReceiveAll implements Conn.
func (c *conn) ReceiveAll() (Pieces, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.awaitReadable(); err != nil {
		return Pieces{}, err
	}
	return c.all(), nil
}

// all hands over all bytes received. If the connection was paused, it resumes.
func (c *conn) all() Pieces {
	p := Pieces{buffer: c.buffer, data: c.data, segments: c.segments, read: c.read, seen: c.seen, bufferPool: &c.poller.bufferPool, wire: c.wire}
	c.buffer, c.data, c.segments, c.read, c.seen = nil, nil, nil, 0, 0
	c.released = false
	if c.paused && !c.closed { // the slot of a closed connection may be in use again
		c.paused = false
		c.slot.set(slotPaused, false)
		if err := c.watch(); err != nil {
			c.err = err
		}
	}
	return p
}
