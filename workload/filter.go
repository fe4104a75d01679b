package workload

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/tacho-bench/tacho/internal/rows"
)

// bounds are the token limits vLLM's benchmark sets for a question and its answer.
type bounds struct {
	least, prompt, total int
	templated            bool // the prompt includes the chat template
}

var (
	shareGPTBounds = bounds{least: 4, prompt: 1024, total: 2048}
	mathBounds     = bounds{least: 4, prompt: 2048, total: 32_000}
	chatBounds     = bounds{least: 4, prompt: 1024, total: 2048, templated: true}
)

// newFiltered makes a workload of the entries whose prompt and answer are within bounds,
// at most Options.Count.
func newFiltered(ctx context.Context, name string, o Options, entries []entry, b bounds, bad rows.Bad) (Workload, error) {
	if o.Shuffle {
		rngOf(o.Seed, 0).Shuffle(len(entries), func(a, b int) { entries[a], entries[b] = entries[b], entries[a] })
	}
	if err := o.findTemplate(ctx); err != nil {
		return nil, err
	}
	fit, err := b.filter(ctx, o, entries)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(fit) == 0 {
		return nil, fmt.Errorf("%s: %s has no conversation of the required length (prompts of %d to %d tokens, at most %d with the answer)%s", name, o.Path, b.least, b.prompt, b.total, bad.Also())
	}
	o.Shuffle = false // already shuffled
	return newPool(ctx, o, fit, bad.Notes()...)
}

// filter keeps the entries within bounds, in order. It counts several entries
// concurrently because the counter may be a server.
func (b bounds) filter(ctx context.Context, o Options, entries []entry) ([]entry, error) {
	var out []entry
	for chunk := range slices.Chunk(entries, 8*fitWorkers) {
		fits, err := b.check(ctx, o, chunk)
		if err != nil {
			return nil, err
		}
		for i := range chunk {
			if !fits[i] {
				continue
			}
			if out = append(out, chunk[i]); o.Count > 0 && len(out) == o.Count {
				return out, nil
			}
			if o.Progress != nil {
				o.Progress(len(out), max(o.Count, len(out)))
			}
		}
	}
	return out, nil
}

// check reports for each entry whether it is within bounds.
func (b bounds) check(ctx context.Context, o Options, entries []entry) ([]bool, error) {
	fits := make([]bool, len(entries))
	errs := make([]error, fitWorkers)
	var wg sync.WaitGroup
	for w := range fitWorkers {
		wg.Go(func() {
			for i := w; i < len(entries) && errs[w] == nil; i += fitWorkers {
				if errs[w] = ctx.Err(); errs[w] == nil {
					fits[i], errs[w] = b.fits(ctx, o, &entries[i])
				}
			}
		})
	}
	wg.Wait()
	return fits, firstError(errs...)
}

// fits counts an entry and reports whether its lengths are within bounds.
func (b bounds) fits(ctx context.Context, o Options, e *entry) (ok bool, err error) {
	if e.tokens, err = o.countPrompt(ctx, e); err != nil {
		return false, err
	}
	tokens := e.tokens
	if !b.templated {
		tokens -= o.templateTokens
	}
	if tokens < b.least || tokens > b.prompt {
		return false, nil
	}
	if given, constant := o.Output.Constant(); !constant || given > 0 {
		// A requested output length may be short. It counts towards the total only if it
		// is constant, because other lengths are drawn later.
		return !constant || tokens+given <= b.total, nil
	}
	e.OutputTokens, err = o.countAnswer(ctx, e.answer)
	return e.OutputTokens >= b.least && tokens+e.OutputTokens <= b.total, err
}
