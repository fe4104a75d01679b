package socket

import (
	"io"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// Bytes the tap missed keep the time of the socket, and their stamp says so.
func TestWireClockFallsBack(t *testing.T) {
	_, c, peer := wirePair(t)
	receive := func() Stamp {
		t.Helper()
		must.Get(io.WriteString(peer, "hello"))(t)
		n, s, err := c.Receive(make([]byte, 10))
		if n != 5 || err != nil {
			t.Fatal(n, err)
		}
		return s
	}
	send := func(before uint64) bool {
		t.Helper()
		if n := c.Send([]byte("hello")); n != 5 {
			t.Fatal(n)
		}
		must.Get(io.ReadFull(peer, make([]byte, 5)))(t)
		_, _, ok := c.Left(before, before+5)
		return ok
	}
	if s := receive(); !s.Wire || !send(0) {
		t.Errorf("%+v: want the wire clock both ways", s)
	}
	c.wire.conn.In.Skip(8) // in the middle of the next receive
	if s := receive(); s.Wire || !s.Kernel {
		t.Errorf("%+v: want the kernel's time", s)
	}
	if s := receive(); !s.Wire {
		t.Errorf("%+v: want the wire clock again", s)
	}
	c.wire.conn.Out.Skip(1 << 20)
	if send(5) {
		t.Error("bytes that the tap has missed have a time")
	}
}

// If the tap saw a segment only after the socket had its bytes, the segment was a
// retransmission and the tap missed the first copy, even if the bytes are unread.
func TestWireClockIsNotLaterThanTheRead(t *testing.T) {
	_, c, peer := wirePair(t)
	resume := Stall(c)
	defer resume()
	deliver(t, peer, c, "hello")
	_, seen, _ := c.wire.conn.In.At(5)
	if n, s := c.wire.first(5, Stamp{At: now(), Kernel: true}); n != 5 || !s.Wire {
		t.Errorf("%d bytes with %+v, want 5 with the wire's time", n, s)
	}
	for _, lag := range []int32{5, 2e9} {
		had := Stamp{At: seen - 10, Lag: lag, Kernel: true}
		if n, s := c.wire.first(5, had); n != 5 || s != had {
			t.Errorf("%d bytes with %+v, want 5 with the socket's %+v", n, s, had)
		}
	}
}

// A closed tap stays open until its last connection is released.
func TestWireClockEnds(t *testing.T) {
	clock, c, _ := wirePair(t)
	clock.tap.Close() // as Clock.Close does
	if clock.tap.Closed() {
		t.Error("the tap is closed while there is a connection")
	}
	c.Close()
	if !clock.tap.Closed() {
		t.Error("the tap is open")
	}
}
