package engine

import (
	"context"
	"time"
)

// fine is the part of a wait that a precise nap spends in the system's own
// sleep. The runtime rounds a wait up to a whole millisecond when it has
// nothing else to do, so the last two are too many for it; and to wait twice costs
// more than to wait once.
const fine = 10 * time.Millisecond

// A nap waits for points in time.
type nap struct{ precise bool }

// until waits for t, or for ctx. A time that has passed is no wait.
func (n nap) until(ctx context.Context, t time.Time) error {
	d := time.Until(t)
	if n.precise {
		d -= fine
	}
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if n.precise {
		for d := time.Until(t); d > 0; d = time.Until(t) {
			sleepFinely(d)
		}
	}
	return ctx.Err()
}
