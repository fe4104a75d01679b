package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/traceid"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// requestID returns the id of a request for a name that is unique in the run.
func (j *setting) requestID(name string) string {
	if j.Plan.RequestIDFormat != plan.UUIDs {
		return j.Plan.RequestIDPrefix + name
	}
	id := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", j.env.Random, j.Plan.RequestIDPrefix, name))
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // bits of a random UUID: version 4, variant 1
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
}

// levelPrefix makes request ids unique across levels.
func levelPrefix(l plan.Level) string {
	if l.Name == "" {
		return ""
	}
	return fmt.Sprintf("L%d-", l.Index)
}

// named adds ids to the requests of each session, and adapters if the plan has
// any.
func (r *Runner) named(work workload.Workload, l plan.Level) tacho.Source {
	p := &r.Plan
	return &named{work, r.setting, levelPrefix(l), p.SessionHeader, p.LoraModules, p.AdaptersAtRandom(), r.workSeed(l)}
}

type named struct {
	tacho.Source
	setting  *setting
	prefix   string // of the level
	header   string // carries the session number; empty for none
	adapters []string
	random   bool
	seed     uint64
}

// Session implements tacho.Source.
func (n *named) Session(i uint64) (tacho.Session, error) {
	s, err := n.Source.Session(i)
	if err != nil {
		return s, err
	}
	for t := range s.Turns {
		q := &s.Turns[t].Request
		name := fmt.Sprintf("%s%d", n.prefix, i)
		if n.header != "" {
			q.Header = append(q.Header, tacho.Label{Key: n.header, Value: n.setting.requestID(name)})
		}
		if t > 0 {
			name = fmt.Sprintf("%s.%d", name, t)
		}
		q.ID = n.setting.requestID(name)
		if trace := n.setting.env.Trace; trace != 0 {
			if id := traceid.Of(trace, q.ID); id.Sampled(n.setting.Plan.Traceparent) {
				q.Header = append(slices.Clip(q.Header), tacho.Label{Key: traceid.Header, Value: id.Parent()})
			}
		}
		if len(n.adapters) > 0 && q.Model == "" {
			pick := i
			if n.random {
				pick = rand.New(rand.NewPCG(n.seed, i)).Uint64()
			}
			q.Model = n.adapters[pick%uint64(len(n.adapters))]
			q.Labels = append(q.Labels, tacho.Label{Key: "adapter", Value: q.Model})
		}
	}
	return s, nil
}

// warmups is the source of warm-up requests.
type warmups struct {
	work    workload.Workload
	setting *setting
	name    string // name of these requests
}

// Session implements tacho.Source.
func (w warmups) Session(i uint64) (tacho.Session, error) {
	s, err := w.work.Warmup(i)
	if err == nil {
		s.Turns[0].Request.ID = w.setting.requestID(fmt.Sprintf("%s-%d", w.name, i))
	}
	return s, err
}

// errAsText reports that the run switched to text prompts.
var errAsText = errors.New("prompts are now sent as text")

// textInstead switches the run to text prompts if the failure of a first
// request looks like a rejection of token ids. The next attempt confirms the
// cause, and the report mentions it.
func (r *Runner) textInstead(ctx context.Context, q *tacho.Request, f *tacho.Failure) error {
	if q.Input.IDs == nil || r.Plan.PromptText || r.Plan.PromptIDs || !r.Target.RefusesIDs(f) {
		return nil
	}
	r.idsRefused = fmt.Sprintf("status %d: %s", f.Status, r.env.Secrets.Hide(f.Message))
	r.say("The server rejected a prompt of token ids (%s), trying text as with --prompt-text.", r.idsRefused)
	t, err := r.Target.AsText(ctx)
	if err != nil {
		return err
	}
	r.use(t)
	return errAsText
}

// refusal returns a reason for the report if the server rejected token ids.
func (r *Runner) refusal() []metric.Reason {
	if r.idsRefused == "" {
		return nil
	}
	return []metric.Reason{{
		Code: "prompt-text", Severity: metric.Note,
		Text: "the server rejected token ids (" + r.idsRefused + "), so prompts were sent as text, counted by " + r.Target.Counter().Name() + ": use --prompt-text to skip the attempt",
	}}
}
