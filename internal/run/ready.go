package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/target"
	"github.com/tacho-bench/tacho/workload"
)

// ready sends a test request to each server before the measurement, so that a
// mistake in all requests costs only one. With a ready check, ready waits for
// the answer.
func (r *Runner) ready(ctx context.Context, work workload.Workload) error {
	wait := r.Plan.ReadyCheck.Duration()
	if wait == 0 && r.Plan.NoTrial {
		return nil
	}
	if wait > 0 {
		r.say("Waiting up to %v for the server to answer.", wait)
	}
	deadline := time.Now().Add(wait)
	for i := range r.Target.Each {
		for {
			f, err := r.try(ctx, i, work, deadline)
			if err != nil {
				return err
			}
			if f == nil {
				break
			}
			if target.Hopeless(f) || !target.Pause(ctx, deadline) {
				return r.Target.Refused(ctx, i, f)
			}
		}
	}
	return nil
}

// trialTokens is the output length of the test request. The first token shows
// the time to first token, the second the time per token.
const trialTokens = 2

// try sends one test request to a server and returns its failure. The answer is
// short because it delays the run, except if the request is also the first
// warm-up.
func (r *Runner) try(ctx context.Context, server int, work workload.Workload, deadline time.Time) (*tacho.Failure, error) {
	// Use a number far from the warm-up's, which sends different prompts.
	sess, err := work.Warmup(1<<32 + r.tries)
	if err != nil {
		return nil, err
	}
	q := &sess.Turns[0].Request
	q.Quote(nil)
	whole := q.MaxTokens
	if r.Plan.NumWarmups == 0 || r.Plan.ReadyCheck > 0 {
		q.MaxTokens = min(whole, trialTokens)
	}
	rec, err := r.sendTrial(ctx, server, q, deadline)
	if err == nil && q.MaxTokens < whole && tooShort(rec.Failure) {
		q.MaxTokens = whole
		rec, err = r.sendTrial(ctx, server, q, deadline)
	}
	switch {
	case err != nil:
		return nil, err
	case rec.Failure != nil:
		return rec.Failure, r.textInstead(ctx, q, rec.Failure)
	}
	r.took = max(r.took, wholeAnswer(rec, q.MaxTokens, whole))
	return nil, nil
}

// tooShort reports whether a server cannot answer with as few tokens as a test
// request: protocols have a minimum, and models may reason before the answer.
func tooShort(f *tacho.Failure) bool {
	return f != nil && (f.Cause == tacho.Empty || strings.Contains(f.Message, "max_") && strings.Contains(f.Message, "tokens"))
}

// wholeAnswer extrapolates the duration of a full answer from a shorter one. It
// returns 0 if unknown, because the tokens arrived together.
func wholeAnswer(rec *tacho.Record, requested, whole int) time.Duration {
	switch {
	case requested == whole:
		return rec.End - rec.Sent
	case len(rec.Events) < trialTokens:
		return 0
	}
	return rec.First() - rec.Sent + time.Duration(whole-1)*(rec.End-rec.First())/(trialTokens-1)
}

// sendTrial sends an unmeasured request to one server.
func (r *Runner) sendTrial(ctx context.Context, server int, q *tacho.Request, deadline time.Time) (*tacho.Record, error) {
	q.ID = r.requestID(fmt.Sprintf("trial-%d", r.tries))
	r.tries++
	call, err := r.Target.Each[server].Prepare(q)
	if err != nil {
		return nil, &UsageError{Err: err}
	}
	if r.Plan.ReadyCheck == 0 {
		deadline = time.Now().Add(r.Plan.RequestTimeout.Duration())
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	rec := &tacho.Record{Timeline: tacho.NewTimeline(0)}
	call.Do(ctx, time.Now(), rec, tacho.CallOptions{})
	return rec, nil
}

// warmUp sends the warm-up requests within the level's limit. Test requests
// count as warm-ups.
func (x local) warmUp(ctx context.Context, s *level) error {
	n := x.Plan.NumWarmups
	if x.fresh && x.Plan.ReadyCheck == 0 {
		n -= int(x.tries)
	}
	if n <= 0 {
		return nil
	}
	x.say("Warming up with %d requests.", x.Plan.NumWarmups)
	limit := s.Concurrency
	if limit == 0 {
		limit = n
	}
	sum, err := x.aside(ctx, s, levelPrefix(s.Level)+"warmup", n, limit)
	if err == nil && len(sum.Failures) > 0 {
		f := sum.Failures[0]
		x.say("%d of %d warm-up requests failed (%s): %s", sum.Failed, x.Plan.NumWarmups, f.Cause, f.Example)
	}
	return err
}
