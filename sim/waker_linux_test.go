package sim

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A wake before or during a wait ends exactly one wait.
func TestWaker(t *testing.T) {
	eventfd := newWaker().(eventfdWaker)
	timer := newTimerWaker()
	for name, b := range map[string]struct {
		waker
		woken func() bool
	}{
		"eventfd": {eventfd, func() bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(eventfd.fd), Events: unix.POLLIN}}, 0)
			return n != 0 || err != nil
		}},
		"timer": {timer, func() bool { return len(timer.woken) > 0 }},
	} {
		b.wake()
		b.wake()
		if !b.woken() {
			t.Errorf("%s: a wake before the wait was lost", name)
		}
		b.wait(forever)
		if b.woken() {
			t.Errorf("%s: a wake ended two waits", name)
		}
		heard := make(chan struct{})
		go func() {
			for range 1000 { // covers wakes before and during the wait
				b.wait(forever)
				heard <- struct{}{}
			}
		}()
		for range 1000 {
			b.wake()
			<-heard
		}
		b.close()
	}
}
