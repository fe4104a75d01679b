package socket

import (
	"sync/atomic"
	"time"
)

// Stall keeps the receive thread of a connection from receiving until resume is called,
// because the ring seems full. Tests use Stall to make segments merge in the socket.
func Stall(c Conn) (resume func()) {
	p := c.(*conn).poller
	p.sort()
	p.sorting.Lock()
	atomic.AddInt64(&p.tail, -int64(len(p.arrivals)))
	// The thread may have found room just before and be about to receive. It reads the
	// clock before it looks for room again.
	for before := atomic.LoadInt64(&p.now); atomic.LoadInt64(&p.now) == before; {
		time.Sleep(100 * time.Microsecond)
	}
	return func() {
		atomic.AddInt64(&p.tail, int64(len(p.arrivals)))
		p.sorting.Unlock()
	}
}
