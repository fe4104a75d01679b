package transport

import (
	"net"
	"time"
)

// SetDeadline implements net.Conn.
func (c *polled) SetDeadline(t time.Time) error { return c.setDeadlines(&t, &t) }

// SetReadDeadline implements net.Conn.
func (c *polled) SetReadDeadline(t time.Time) error { return c.setDeadlines(&t, nil) }

// SetWriteDeadline implements net.Conn.
func (c *polled) SetWriteDeadline(t time.Time) error { return c.setDeadlines(nil, &t) }

func (c *polled) setDeadlines(read, write *time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	if read != nil {
		c.readBy = *read
	}
	if write != nil {
		c.writeBy = *write
	}
	if c.alarm == nil {
		c.alarm = time.AfterFunc(time.Hour, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.changed.Broadcast()
			c.setAlarm()
		})
	}
	c.changed.Broadcast()
	c.setAlarm()
	return nil
}

// setAlarm wakes everybody at the next deadline that has not passed.
func (c *polled) setAlarm() {
	c.alarm.Stop()
	next := time.Duration(-1)
	for _, t := range []time.Time{c.readBy, c.writeBy} {
		if d := time.Until(t); !t.IsZero() && d > 0 && (next < 0 || d < next) {
			next = d
		}
	}
	if next > 0 && !c.closed {
		c.alarm.Reset(next)
	}
}
