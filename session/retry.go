package session

import (
	"net/http"
	"time"

	"github.com/tacho-bench/tacho"
)

const (
	firstPause   = 100 * time.Millisecond // before the second attempt; doubles with each attempt
	longestPause = 5 * time.Second
)

// Retry reports whether to send a request again after the given number of attempts, and after which pause. At most
// retries attempts may follow the first. The failure must be transient, and the server must not have generated any
// token, because a retry would generate the token twice.
func Retry(rec *tacho.Record, attempts, retries int) (pause time.Duration, retry bool) {
	if attempts > retries || !retryable(rec) {
		return 0, false
	}
	pause = firstPause
	for range attempts - 1 {
		pause = min(2*pause, longestPause)
	}
	return max(pause, rec.Failure.RetryAfter), true
}

// retryable reports whether another attempt may succeed.
func retryable(rec *tacho.Record) bool {
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
