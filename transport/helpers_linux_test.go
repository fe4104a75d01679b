package transport

import (
	"io"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// keepStamping has the kernel stamp what it receives for as long as the test runs. A
// client waits a second for that, which is not enough on a machine that stands still.
func keepStamping(t testing.TB) {
	t.Helper()
	for {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		if err := stampReceives(fd); err != nil {
			t.Fatal(err)
		}
		if awaitStamps(fd) {
			return
		}
	}
}

// preparedConn has the next request use a connection that the test knows.
func preparedConn(t *testing.T, c *Client) *conn {
	t.Helper()
	nc, err := c.dialer.dialTarget(t.Context(), hostPort(c.base))
	if err != nil {
		t.Fatal(err)
	}
	c.spares.want = 1
	c.spares.put(nc)
	return connUnder(nc)
}

// holdUp keeps a poller from receiving: it finds no room.
func holdUp(p *poller) (goOn func()) {
	p.sort()
	p.sorting.Lock()
	atomic.AddInt64(&p.tail, -int64(len(p.arrivals)))
	// The thread may have found room just before, and be about to receive. It looks at
	// the clock before it looks for room again.
	awaitChange(&p.now)
	return func() {
		atomic.AddInt64(&p.tail, int64(len(p.arrivals)))
		p.sorting.Unlock()
	}
}

// awaitChange waits until the thread of a poller has changed one of its times.
func awaitChange(at *int64) {
	for before := atomic.LoadInt64(at); atomic.LoadInt64(at) == before; {
		time.Sleep(100 * time.Microsecond)
	}
}

// queued returns how many bytes lie in the socket of a connection.
func queued(c *polled) int {
	n, err := unix.IoctlGetInt(c.fd, unix.TIOCINQ)
	if err != nil {
		return -1
	}
	return n
}

// deliver writes to the peer of a connection that nothing is received from, and waits
// until all of it lies in the connection's socket, or more than one receive takes: no
// socket has room for everything.
func deliver(t testing.TB, to io.Writer, c *polled, text string) {
	t.Helper()
	want := queued(c) + min(len(text), receiveMost+1)
	if _, err := io.WriteString(to, text); err != nil {
		t.Error(err)
		return
	}
	waitUntil(t, "the bytes have arrived", func() bool { return queued(c) >= want })
}

// emptyAt is when a socket is known to have been empty, by the stamp of what came after.
func emptyAt(s stamp) int64 {
	if s.since == math.MaxInt32 { // that long ago, or longer
		return math.MinInt64
	}
	return s.at - int64(s.since)
}
