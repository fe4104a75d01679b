package session

import (
	"net/http"
	"time"

	"tacho"
)

const (
	firstPause   = 100 * time.Millisecond // before the second attempt; it doubles
	longestPause = 5 * time.Second
)

// Again says whether a request is sent once more after so many attempts, of which
// retries may follow the first, and after which pause: the failure must be one of
// the moment, and nothing generated that would be generated twice.
func Again(rec *tacho.Record, attempts, retries int) (pause time.Duration, again bool) {
	if attempts > retries || !mayPass(rec) {
		return 0, false
	}
	pause = firstPause
	for range attempts - 1 {
		pause = min(2*pause, longestPause)
	}
	return max(pause, rec.Failure.RetryAfter), true
}

// mayPass says whether another attempt has a chance.
func mayPass(rec *tacho.Record) bool {
	f := rec.Failure
	if f == nil || len(rec.Events) > 0 {
		return false
	}
	switch f.Cause {
	case tacho.Refused, tacho.Connect, tacho.Reset, tacho.Truncated, tacho.InBand:
		return true
	case tacho.Status:
		return f.Status == http.StatusTooManyRequests || f.Status == http.StatusRequestTimeout || f.Status >= http.StatusInternalServerError
	}
	return false
}
