package sim

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Whoever rings is heard, also before anybody waits, and is heard once.
func TestBellIsHeard(t *testing.T) {
	chime := newBell().(chime)
	gong := newGong()
	for name, b := range map[string]struct {
		bell
		rung func() bool
	}{
		"chime": {chime, func() bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(chime.fd), Events: unix.POLLIN}}, 0)
			return n != 0 || err != nil
		}},
		"gong": {gong, func() bool { return len(gong.rung) > 0 }},
	} {
		b.ring()
		b.ring()
		if !b.rung() {
			t.Errorf("%s: it was rung, and nobody can hear it", name)
		}
		b.wait(forever)
		if b.rung() {
			t.Errorf("%s: it was heard, and rings on", name)
		}
		heard := make(chan struct{})
		go func() {
			for range 1000 { // sometimes it waits when it is rung, and sometimes it does not yet
				b.wait(forever)
				heard <- struct{}{}
			}
		}()
		for range 1000 {
			b.ring()
			<-heard
		}
		b.close()
	}
}
