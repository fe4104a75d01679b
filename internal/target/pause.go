package target

import (
	"context"
	"time"

	"github.com/tacho-bench/tacho"
)

// readyPause is the longest pause between two attempts to get a first answer.
// An attempt needs at least leastTry.
const (
	readyPause = time.Second
	leastTry   = 50 * time.Millisecond
)

// Pause waits before another attempt and returns false if no time is left.
// Pauses get shorter towards the deadline, so that short timeouts allow several
// attempts.
func Pause(ctx context.Context, deadline time.Time) bool {
	wait := min(time.Until(deadline)/2, readyPause)
	if wait < leastTry {
		return false
	}
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
		return false
	}
}

// Hopeless reports whether another attempt would fail too.
func Hopeless(f *tacho.Failure) bool {
	switch f.Status {
	case 400, 401, 403, 413, 422:
		return true
	}
	return f.Cause == tacho.Malformed || f.Cause == tacho.TLS
}
