package target

import (
	"context"
	"time"

	"tacho"
)

// readyPause is between two tries to get a first answer, at most. A try needs
// leastTry to come to anything.
const (
	readyPause = time.Second
	leastTry   = 50 * time.Millisecond
)

// Pause waits before another try; false: there is no time for one. Towards the
// end of the time there are more of them, so that little time is not none.
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

// Hopeless says whether it is no use to try again.
func Hopeless(f *tacho.Failure) bool {
	switch f.Status {
	case 400, 401, 403, 413, 422:
		return true
	}
	return f.Cause == tacho.Malformed || f.Cause == tacho.TLS
}
