//go:build real

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
// taken away, and how late a bell is says nothing of it. Then all is measured again.
func TestRealBellIsPunctual(t *testing.T) {
	bell, gong := newBell(), newGong()
	defer bell.close()
	defer gong.close()
	waits := []func(time.Duration){bell.wait, gong.wait, func(d time.Duration) {
		ts := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&ts, nil)
	}}
	const tries = 100
	for range tries {
		late := lateness(waits)
		fine, coarse, plain := late[0], late[1], late[2]
		t.Logf("late by %v and %v, a plain sleep by %v", fine, coarse, plain)
		if fine <= coarse/2 {
			return
		}
		if plain <= coarse/2 {
			t.Fatal("the bell is late, and a plain sleep is not")
		}
	}
	t.Skipf("a plain sleep was late in each of %d tries: this machine is too busy to tell", tries)
}

// lateness is by how much some ways to wait are late, in the better quarter of their
// waits.
func lateness(waits []func(time.Duration)) (out []time.Duration) {
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
		out = append(out, l[len(l)/4])
	}
	return out
}
