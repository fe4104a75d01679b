package socket

import (
	"net"
	"time"
)

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.setDeadlines(&t, &t) }

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(&t, nil) }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(nil, &t) }

func (c *conn) setDeadlines(read, write *time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	if read != nil {
		c.readDeadline = *read
	}
	if write != nil {
		c.writeDeadline = *write
	}
	if c.deadlineTimer == nil {
		c.deadlineTimer = time.AfterFunc(time.Hour, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.changed.Broadcast()
			c.setDeadlineTimer()
		})
	}
	c.changed.Broadcast()
	c.setDeadlineTimer()
	return nil
}

// setDeadlineTimer sets the timer for the next future deadline.
func (c *conn) setDeadlineTimer() {
	c.deadlineTimer.Stop()
	next := time.Duration(-1)
	for _, t := range []time.Time{c.readDeadline, c.writeDeadline} {
		if d := time.Until(t); !t.IsZero() && d > 0 && (next < 0 || d < next) {
			next = d
		}
	}
	if next > 0 && !c.closed {
		c.deadlineTimer.Reset(next)
	}
}
