//go:build real

package sim

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The eventfd waker wakes up with less delay than the runtime's timers, which have
// a granularity of a millisecond in an idle process. Both are measured alternately
// with a plain sleep. If even the plain sleep is late, the machine is overloaded,
// and the measurement is repeated.
func TestRealWakerPrecision(t *testing.T) {
	kernel, runtime := newWaker(), newTimerWaker()
	defer kernel.close()
	defer runtime.close()
	waits := []func(time.Duration){kernel.wait, runtime.wait, func(d time.Duration) {
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
			t.Fatal("the waker is late but a plain sleep is not")
		}
	}
	t.Skipf("a plain sleep was late in each of %d tries: this machine is too busy to tell", tries)
}

// lateness returns the lower quartile of the delay of each way to wait.
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
