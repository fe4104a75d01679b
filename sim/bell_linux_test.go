package sim

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The bell of a real server is later than what it waits for by less than that of
// the runtime, which sleeps for whole milliseconds where nothing else goes on. They
// take turns, and a plain sleep with them: where even that is late, processors are
// taken away, and how late a bell is says nothing of it.
func TestBellIsPunctual(t *testing.T) {
	bell, gong := newBell(), newGong()
	defer bell.close()
	defer gong.close()
	waits := []func(time.Duration){bell.wait, gong.wait, func(d time.Duration) {
		ts := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&ts, nil)
	}}
	late := make([][]time.Duration, len(waits))
	for range 60 {
		for i, wait := range waits {
			due := time.Now().Add(1300 * time.Microsecond)
			for d := time.Until(due); d > 0; d = time.Until(due) {
				wait(d)
			}
			late[i] = append(late[i], time.Since(due))
		}
	}
	for _, l := range late {
		slices.Sort(l)
	}
	quarter := len(late[0]) / 4
	fine, coarse, plain := late[0][quarter], late[1][quarter], late[2][quarter]
	t.Logf("late by %v and %v, a plain sleep by %v", fine, coarse, plain)
	switch {
	case fine <= coarse/2:
	case plain > coarse/2:
		t.Skipf("a plain sleep is late by %v, and the bell of the runtime by %v: this machine is too busy to tell", plain, coarse)
	default:
		t.Errorf("the bell is late by %v, that of the runtime by %v, and a plain sleep by %v", fine, coarse, plain)
	}
}

// Whoever rings is heard, also before anybody waits.
func TestBellIsHeard(t *testing.T) {
	for _, b := range []bell{newBell(), newGong()} {
		b.ring()
		b.ring()
		b.wait(forever)
		go func() {
			time.Sleep(time.Millisecond)
			b.ring()
		}()
		b.wait(forever)
		b.close()
	}
}
