package run

import (
	"context"
	"fmt"
	"math/rand/v2"

	"tacho"
	"tacho/workload"
)

// workload makes the dataset of the plan ready for a level.
func (r *Runner) workload(ctx context.Context, l Level, seed uint64) (workload.Workload, error) {
	p := &r.Plan
	kind, err := workload.Find(p.DatasetName)
	if err != nil {
		return nil, &UsageError{fmt.Errorf("--dataset-name: %w", err)}
	}
	o := workload.Options{
		Seed: seed, Count: max(l.Prompts, 0), Counter: r.Counter, IDs: r.sendsIDs(), Path: p.DatasetPath,
		Shuffle: !p.DisableShuffle, Repeat: !p.NoOversample && (l.Prompts > 0 || p.MaxSeconds > 0),
		Vocab: p.RandomVocab, IgnoreEOS: p.IgnoreEOS, Progress: r.hooks.Ready,
	}
	switch p.DatasetName {
	case "random":
		o.Input, o.Output, o.Prefix = p.RandomInputLen, p.RandomOutputLen, p.RandomPrefixLen
		o.InRatio, o.OutRatio = p.RandomRangeRatio.Input, p.RandomRangeRatio.Output
		o.IgnoreEOS = o.IgnoreEOS || r.kind.ExactLength
	case "book":
		o.Input, o.Output = p.BookInputLen, p.BookOutputLen
	case "custom":
		o.Output = p.CustomOutputLen
	}
	if p.InputLen != nil {
		o.Input = *p.InputLen
	}
	if p.OutputLen != nil {
		o.Output = *p.OutputLen
	}
	work, err := kind.New(ctx, o)
	if err != nil && ctx.Err() == nil {
		return nil, &UsageError{err}
	}
	return work, err
}

// levelPrefix keeps the request ids of levels apart.
func levelPrefix(p *Plan, l Level) string {
	if p.Varies() == "" {
		return ""
	}
	return fmt.Sprintf("L%d-", l.Index)
}

// named gives each session's requests their ids, and their adapter where the
// plan has some.
func (r *Runner) named(work workload.Workload, l Level) tacho.Source {
	return &named{work, r.Plan.RequestIDPrefix + levelPrefix(&r.Plan, l), r.Plan.LoraModules, r.Plan.LoraAssignment == "random", r.seedOf(l)}
}

type named struct {
	tacho.Source
	prefix   string
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
		q.ID = fmt.Sprintf("%s%d", n.prefix, i)
		if t > 0 {
			q.ID = fmt.Sprintf("%s.%d", q.ID, t)
		}
		if len(n.adapters) > 0 {
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
	work   workload.Workload
	prefix string
}

// Session implements tacho.Source.
func (w warmups) Session(i uint64) (tacho.Session, error) {
	s, err := w.work.Warmup(i)
	if err == nil {
		s.Turns[0].Request.ID = fmt.Sprintf("%swarmup-%d", w.prefix, i)
	}
	return s, err
}
