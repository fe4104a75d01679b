package backend

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/session"
)

// Retry returns a backend that sends a request again, up to n times, if the failure is transient and no token
// arrived. The record stores the number of attempts. Its send times belong to the first attempt, because the user
// has waited since then.
func Retry(b tacho.Backend, n int) tacho.Backend {
	return &retrying{inner: b, retries: n}
}

type retrying struct {
	inner   tacho.Backend
	retries int
}

// Prepare implements tacho.Backend.
func (r *retrying) Prepare(q *tacho.Request) (tacho.Call, error) {
	call, err := r.inner.Prepare(q)
	if err != nil {
		return nil, err
	}
	if c, ok := call.(interface{ keep() }); ok {
		c.keep()
	}
	return &retryingCall{call, r.retries}, nil
}

type retryingCall struct {
	inner   tacho.Call
	retries int
}

// Do implements tacho.Call.
func (c *retryingCall) Do(ctx context.Context, epoch time.Time, rec *tacho.Record, o tacho.CallOptions) {
	untouched := *rec
	var first tacho.Timeline
	for attempt := 1; ; attempt++ {
		c.inner.Do(ctx, epoch, rec, o)
		if attempt == 1 {
			first = rec.Timeline
		}
		pause, again := session.Retry(rec, attempt, c.retries)
		if !again || !sleep(ctx, pause) {
			c.mark(rec, attempt, &first)
			return
		}
		*rec = untouched
	}
}

func (c *retryingCall) mark(rec *tacho.Record, attempts int, first *tacho.Timeline) {
	if attempts == 1 {
		return
	}
	rec.Attempts = attempts
	if first.Sent != tacho.Never {
		rec.Conn, rec.Sent, rec.SentSlack, rec.Wrote = first.Conn, first.Sent, first.SentSlack, first.Wrote
	}
}

// retryAfter parses a Retry-After header, in seconds or as a date. retryAfter returns 0 for an invalid value.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return duration(seconds, time.Second)
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(date.Sub(now), 0)
	}
	return 0
}

// sleep reports whether it slept for d. If the deadline would end the sleep, sleep returns false at once, because
// the failure is already certain.
func sleep(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
