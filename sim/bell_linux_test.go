package sim

import (
	"slices"
	"testing"
	"time"
)

// The bell of a real server is later than what it waits for by less than that of
// the runtime, which sleeps for whole milliseconds where nothing else goes on.
func TestBellIsPunctual(t *testing.T) {
	late := func(b bell) time.Duration {
		defer b.close()
		var late []time.Duration
		for range 40 {
			due := time.Now().Add(1300 * time.Microsecond)
			for d := time.Until(due); d > 0; d = time.Until(due) {
				b.wait(d)
			}
			late = append(late, time.Since(due))
		}
		slices.Sort(late)
		return late[len(late)/4]
	}
	fine, coarse := late(newBell()), late(newGong())
	t.Logf("late by %v and %v", fine, coarse)
	if fine > coarse/2 {
		t.Errorf("the bell is late by %v, and that of the runtime by %v", fine, coarse)
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
