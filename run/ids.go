package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"

	"tacho"
	"tacho/metric"
	"tacho/plan"
	"tacho/workload"
)

// requestID is the id of a request, made of a name that is unique in the run.
func (j *setting) requestID(name string) string {
	if j.Plan.RequestIDFormat != plan.UUIDs {
		return j.Plan.RequestIDPrefix + name
	}
	id := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", j.env.Random, j.Plan.RequestIDPrefix, name))
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // what marks a random UUID: version 4, variant 1
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
}

// levelPrefix keeps the request ids of levels apart.
func levelPrefix(l plan.Level) string {
	if l.Name == "" {
		return ""
	}
	return fmt.Sprintf("L%d-", l.Index)
}

// named gives each session's requests their ids, and their adapter where the
// plan has some.
func (r *Runner) named(work workload.Workload, l plan.Level) tacho.Source {
	p := &r.Plan
	return &named{work, r.setting, levelPrefix(l), p.SessionHeader, p.LoraModules, p.AdaptersAtRandom(), r.workSeed(l)}
}

type named struct {
	tacho.Source
	setting  *setting
	prefix   string // of the level
	header   string // that carries the session's number; empty is none
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

// warmups is the source of the warm-up.
type warmups struct {
	work    workload.Workload
	setting *setting
	name    string // of these requests
}

// Session implements tacho.Source.
func (w warmups) Session(i uint64) (tacho.Session, error) {
	s, err := w.work.Warmup(i)
	if err == nil {
		s.Turns[0].Request.ID = w.setting.requestID(fmt.Sprintf("%s-%d", w.name, i))
	}
	return s, err
}

// errAsText says that the run was changed to send prompts as text.
var errAsText = errors.New("prompts are sent as text from now on")

// textInstead changes the run to text where the failure of a first request looks
// like a refusal of token ids. The next try shows whether it was, and the report
// tells.
func (r *Runner) textInstead(ctx context.Context, q *tacho.Request, f *tacho.Failure) error {
	if q.Input.IDs == nil || r.Plan.PromptText || r.Plan.PromptIDs || !r.Target.RefusesIDs(f) {
		return nil
	}
	r.idsRefused = fmt.Sprintf("status %d: %s", f.Status, r.env.Secrets.Hide(f.Message))
	r.say("The server refused a prompt of token ids (%s): trying text, as --prompt-text does.", r.idsRefused)
	t, err := r.Target.AsText(ctx)
	if err != nil {
		return err
	}
	r.use(t)
	return errAsText
}

// refusal is what a reader should know of a server that refused token ids.
func (r *Runner) refusal() []metric.Reason {
	if r.idsRefused == "" {
		return nil
	}
	return []metric.Reason{{
		Code: "prompt-text", Severity: metric.Note,
		Text: "the server refused token ids (" + r.idsRefused + "), so prompts were sent as text, counted by " + r.Target.Counter().Name() + ": --prompt-text does so from the start",
	}}
}
