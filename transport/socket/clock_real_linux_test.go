//go:build real

package socket

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

// Held events are read after holdTime, with the time of their arrival.
func TestRealHeldEventsAreReleased(t *testing.T) {
	keepStamping(t)
	for {
		c, peer := pair(t, true)
		before := now()
		peer.Write([]byte("9\r\ndata: x\n\n\r\n"))
		n, at, err := c.Receive(make([]byte, 100))
		read := now()
		if n != 14 || err != nil || !at.Kernel || at.At < before || at.At > read {
			t.Fatalf("%d bytes, %v, written at %d, received at %d, read at %d", n, err, before, at.At, read)
		}
		// If the poller read the clock before the event arrived, the start of the hold is
		// unknown.
		if at.Lag == 0 {
			continue
		}
		if held := read - at.At - int64(at.Lag); held < int64(holdTime) {
			t.Errorf("it was held for %v only, or that time is in its lag of %d ns", time.Duration(held), at.Lag)
		}
		return
	}
}

// However busy the machine, a prompt reader sometimes gets a bound below one tenth of the
// gap before it.
func TestRealBoundIsTight(t *testing.T) {
	c, peer := pair(t, false)
	const gap, tries = 50 * time.Millisecond, 400
	leastLoaded := time.Hour
	for try := range tries {
		time.Sleep(gap) // the bound is a fraction of this silence
		peer.Write([]byte(chunk("event\n") + chunk("another\n")))
		_, s, err := c.Receive(make([]byte, 100))
		must.Do(t, err)
		if try == 0 { // the socket was not watched before
			continue
		}
		if leastLoaded = min(leastLoaded, time.Duration(s.Since)); leastLoaded < gap/10 {
			return
		}
	}
	t.Errorf("after %d gaps of %v the closest bound was %v", tries, gap, leastLoaded)
}

// The wire clock passes CheckWire. CheckWire times out after one second, so the test
// repeats it if the machine stalls.
func TestRealCheckWire(t *testing.T) {
	wireClock(t) // skips the test without a tap
	const tries = 10
	passed := 0
	for range 10 * tries {
		switch err := CheckWire(t.Context()); {
		case err == nil:
			if passed++; passed == tries {
				return
			}
		case !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded):
			t.Fatal(err)
		}
	}
	t.Errorf("%d trials of %d were late", 10*tries-passed, 10*tries)
}
