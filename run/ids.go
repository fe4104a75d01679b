package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"

	"tacho"
	"tacho/metric"
	"tacho/plan"
)

// requestID is the id of the request of that name, which is unique in the run.
func (j *job) requestID(name string) string {
	if j.Plan.RequestIDFormat != plan.UUIDs {
		return j.Plan.RequestIDPrefix + name
	}
	id := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", j.env.Random, j.Plan.RequestIDPrefix, name))
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // as one that was drawn at random: version 4, variant 1
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
}

// errAsText says that the run was changed to send prompts as text.
var errAsText = errors.New("prompts are sent as text from now on")

// textInstead looks at how a request failed before any was measured: a server
// that refuses token ids gets text from then on, and the report says so. Whether
// it was the ids shows when the text is tried.
func (r *Runner) textInstead(ctx context.Context, q *tacho.Request, f *tacho.Failure) error {
	// vLLM looks at the ids when it has begun a stream, and says so in it.
	refused := f.Status == http.StatusBadRequest || f.Status == http.StatusUnprocessableEntity || f.Cause == tacho.InBand
	if q.Input.IDs == nil || r.Plan.PromptText || !refused {
		return nil
	}
	r.Plan.PromptText = true
	r.idsRefused = fmt.Sprintf("status %d: %s", f.Status, r.env.Secrets.Hide(f.Message))
	r.say("The server refused a prompt of token ids (%s): trying text, as --prompt-text does.", r.idsRefused)
	if err := r.counting.findCounter(ctx); err != nil {
		return err
	}
	return errAsText
}

// refusal is what a reader should know of a server that refused token ids.
func (r *Runner) refusal() []metric.Reason {
	if r.idsRefused == "" {
		return nil
	}
	return []metric.Reason{{
		Code: "prompt-text", Severity: metric.Note,
		Text: "the server refused token ids (" + r.idsRefused + "), so prompts were sent as text, counted by " + r.counting.counter.Name() + ": --prompt-text does so from the start",
	}}
}
