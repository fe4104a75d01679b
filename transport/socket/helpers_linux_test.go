package socket

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/internal/must"
)

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

const chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

// waitUntil polls a condition until it is true. what names the condition.
func waitUntil(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("timeout: not %s after two minutes", what)
			return
		}
	}
}

// keepStamping keeps kernel timestamping on during the test. A clock waits only one second
// for it, which is too short on a machine that stalls.
func keepStamping(t testing.TB) {
	t.Helper()
	for {
		fd := must.Get(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0))(t)
		t.Cleanup(func() { _ = unix.Close(fd) })
		must.Do(t, stampReceives(fd))
		if awaitStamps(fd) {
			return
		}
	}
}

// pair returns a connection of a new clock and its peer.
func pair(t *testing.T, plainEvents bool) (*conn, *net.TCPConn) {
	t.Helper()
	keepStamping(t)
	clock := NewClock()
	if clock == nil {
		t.Fatal("no kernel clock")
	}
	c, peer := pairOf(t, clock, plainEvents)
	t.Cleanup(func() { c.Close(); peer.Close(); clock.Close() })
	return c, peer
}

// pairOf returns a connection of a clock and its peer.
func pairOf(t *testing.T, clock *Clock, plainEvents bool) (*conn, *net.TCPConn) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return pairBy(t, clock, l, plainEvents)
}

// pairBy returns a connection of a clock to a listener, and its peer.
func pairBy(t *testing.T, clock *Clock, l net.Listener, plainEvents bool) (*conn, *net.TCPConn) {
	t.Helper()
	nc := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	peer := must.Get(l.Accept())(t)
	c := must.Get(clock.take(nc.(*net.TCPConn), plainEvents))(t)
	c.Prepare(1, false)
	c.Watch() // as if something had been sent
	return c, peer.(*net.TCPConn)
}

// wirePair returns a connection of a clock with a tap, and its peer. It skips the test if
// there is no tap.
func wirePair(t *testing.T) (*Clock, *conn, *net.TCPConn) {
	t.Helper()
	keepStamping(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	clock := wireClock(t, addrPort(l.Addr()).Port())
	c, peer := pairBy(t, clock, l, false)
	t.Cleanup(func() { c.Close(); peer.Close() })
	return clock, c, peer
}

// wireClock returns a clock with a tap. It skips the test if there is no tap.
func wireClock(t *testing.T, ports ...uint16) *Clock {
	t.Helper()
	clock := NewClock()
	if clock == nil {
		t.Fatal("no kernel clock")
	}
	t.Cleanup(clock.Close)
	if len(ports) == 0 {
		ports = []uint16{1}
	}
	if err := clock.OpenTap(ports); errors.Is(err, ErrNoWire) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return clock
}

// awaitChange waits until the receive thread changes one of its times.
func awaitChange(at *int64) {
	for before := atomic.LoadInt64(at); atomic.LoadInt64(at) == before; {
		time.Sleep(100 * time.Microsecond)
	}
}

// queued returns the number of unread bytes in the socket.
func queued(c *conn) int {
	n, err := unix.IoctlGetInt(c.fd, unix.TIOCINQ)
	if err != nil {
		return -1
	}
	return n
}

// deliver writes text to the peer of a stalled connection. It waits until the socket holds
// all of text, or more than one receive takes, because a socket may not have room for
// everything.
func deliver(t testing.TB, to io.Writer, c *conn, text string) {
	t.Helper()
	want := queued(c) + min(len(text), receiveMost+1)
	if _, err := io.WriteString(to, text); err != nil {
		t.Error(err)
		return
	}
	waitUntil(t, "the bytes have arrived", func() bool { return queued(c) >= want })
}

// emptyAt returns the time at which the socket was empty, according to the stamp.
func emptyAt(s Stamp) int64 {
	if s.Since == math.MaxInt32 { // or earlier
		return math.MinInt64
	}
	return s.At - int64(s.Since)
}
