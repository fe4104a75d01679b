package engine

import (
	"context"
	"time"
)

// preciseTail is the end of a precise sleep that is spent in the system's own sleep. An
// idle runtime rounds waits up to whole milliseconds, which is too coarse for the end. Two
// waits cost more than one, so shorter sleeps use the system's sleep only.
const preciseTail = 10 * time.Millisecond

// A sleeper waits for points in time.
type sleeper struct{ precise bool }

// until waits for t or ctx. If t is in the past, until returns immediately.
func (n sleeper) until(ctx context.Context, t time.Time) error {
	d := time.Until(t)
	if n.precise {
		d -= preciseTail
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
			sleepPrecisely(d)
		}
	}
	return ctx.Err()
}
