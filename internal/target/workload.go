package target

import (
	"context"
	"fmt"

	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// A feed creates the requests of a plan: its dataset, or the datasets of its
// mix.
type feed struct {
	*setting
	target   *Target
	counting *counting
	endless  bool // start again at the end of the data
}

// workload prepares the dataset of the plan for a level, or all datasets of its
// mix.
func (f *feed) workload(ctx context.Context, l plan.Level, seed uint64) (workload.Workload, error) {
	if len(f.Plan.Mix) == 0 {
		return f.dataset(ctx, &f.Plan, max(l.Inputs, 0), seed)
	}
	parts, err := f.Plan.Classes()
	if err != nil {
		return nil, &UsageError{err}
	}
	sum := 0.0
	for _, c := range parts {
		sum += c.Weight
	}
	var classes []workload.Class
	for i, c := range parts {
		count := 0
		if l.Prompts > 0 { // its share, plus one spare round
			count = min(int(float64(l.Prompts)*c.Weight/sum)+1000, l.Prompts)
		}
		work, err := f.dataset(ctx, &c.Plan, count, seed+uint64(i+1)*0xd1342543de82ef95)
		if err != nil {
			return nil, err
		}
		classes = append(classes, workload.Class{
			Workload: work, Weight: c.Weight, Label: c.Label, Model: c.Model, Priority: c.Priority, Header: c.Header,
		})
	}
	mix, err := workload.Mix(seed, classes)
	if err != nil {
		return nil, &UsageError{fmt.Errorf("--mix: %w", err)}
	}
	return mix, nil
}

// dataset prepares one dataset, as described by the plan p.
func (f *feed) dataset(ctx context.Context, p *plan.Plan, count int, seed uint64) (workload.Workload, error) {
	kind, err := workload.Find(p.DatasetName)
	if err != nil {
		return nil, &UsageError{fmt.Errorf("--dataset-name: %w", err)}
	}
	o := f.datasetOptions(p, kind)
	o.Seed, o.Count = seed, count
	o.Exact = f.counting.exactPrompts(seed)
	o.Repeat = !p.NoOversample && (count > 0 || p.MaxSeconds > 0 || f.endless)
	if err := f.locate(ctx, p, kind, &o); err != nil {
		return nil, err
	}
	template := f.templates(p, kind, o.Hub)
	if template && kind.ByLength {
		o.Counter, o.Templated = templateCounter{promptCounter{f.counting.tokenizer}, f.counting.template}, true
	}
	work, err := kind.New(ctx, o)
	if err != nil {
		if ctx.Err() == nil {
			err = &UsageError{err}
		}
		return nil, err
	}
	if template {
		work = underTemplate{work, templateCounter{promptCounter{f.counting.tokenizer}, f.counting.template}}
	}
	return workload.LimitContext(p.Structured.Shape(work, p.StructuredRatio, seed), p.MaxModelLen), nil
}

// datasetOptions returns the options of p for a dataset of this kind, limited
// to the inputs the server accepts.
func (f *feed) datasetOptions(p *plan.Plan, kind workload.Kind) workload.Options {
	o, takes := kind.Options(&p.Dataset), f.target.Kind.Takes
	o.IDs, o.Messages, o.Media, o.Audio = f.target.takesIDs(p, kind), takes.Messages, takes.Media, takes.Audio
	o.Counter, o.Vocab, o.Progress = f.counting.counter, f.counting.vocabulary(), f.progress
	if o.IgnoreEOS = o.IgnoreEOS && f.target.Kind.ExactLength; p.IgnoreEOS != nil {
		o.IgnoreEOS = *p.IgnoreEOS
	}
	if p.Given("input-len") {
		o.Input = p.InputLen
	}
	if p.Given("output-len") {
		o.Output = p.OutputLen
	}
	return o
}

// progress reports the progress of creating prompts.
func (f *feed) progress(done, all int) { f.env.Observer.Progress("", int64(done), int64(all)) }

// takesIDs reports whether prompts of a dataset are sent as token ids.
func (t *Target) takesIDs(p *plan.Plan, kind workload.Kind) bool {
	return kind.Tokens && t.Kind.Takes.IDs && !p.PromptText
}
