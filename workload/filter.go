package workload

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"tacho/internal/rows"
)

// bounds say how many tokens a question and its answer must have for vLLM's
// benchmark to keep them.
type bounds struct {
	least, prompt, total int
	framed               bool // a prompt counts with the chat template around it
}

var (
	shareGPTBounds = bounds{least: 4, prompt: 1024, total: 2048}
	mathBounds     = bounds{least: 4, prompt: 2048, total: 32_000}
	chatBounds     = bounds{least: 4, prompt: 1024, total: 2048, framed: true}
)

// newFiltered makes a workload of those entries whose prompts and answers have
// fitting lengths, as many as are asked for.
func newFiltered(ctx context.Context, name string, o Options, entries []entry, b bounds, bad rows.Bad) (Workload, error) {
	if o.Shuffle {
		rngOf(o.Seed, 0).Shuffle(len(entries), func(a, b int) { entries[a], entries[b] = entries[b], entries[a] })
	}
	if err := o.findFrame(ctx); err != nil {
		return nil, err
	}
	fit, err := b.filter(ctx, o, entries)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(fit) == 0 {
		return nil, fmt.Errorf("%s: %s has no conversation of fitting length (prompts of %d to %d tokens, at most %d with the answer)%s", name, o.Path, b.least, b.prompt, b.total, bad.Also())
	}
	o.Shuffle = false // they are
	return newPool(ctx, o, fit, bad.Notes()...)
}

// filter keeps the entries that fit, in order. They are counted several at
// once: it may be a server that counts.
func (b bounds) filter(ctx context.Context, o Options, entries []entry) ([]entry, error) {
	var out []entry
	for chunk := range slices.Chunk(entries, 8*fitters) {
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

// check says which of some entries fit.
func (b bounds) check(ctx context.Context, o Options, entries []entry) ([]bool, error) {
	fits := make([]bool, len(entries))
	errs := make([]error, fitters)
	var wg sync.WaitGroup
	for w := range fitters {
		wg.Go(func() {
			for i := w; i < len(entries) && errs[w] == nil; i += fitters {
				if errs[w] = ctx.Err(); errs[w] == nil {
					fits[i], errs[w] = b.fits(ctx, o, &entries[i])
				}
			}
		})
	}
	wg.Wait()
	return fits, cmpErr(errs...)
}

// fits counts an entry and says whether its lengths are within the bounds.
func (b bounds) fits(ctx context.Context, o Options, e *entry) (ok bool, err error) {
	if e.tokens, err = o.countPrompt(ctx, e); err != nil {
		return false, err
	}
	tokens := e.tokens
	if !b.framed {
		tokens -= o.frame
	}
	if tokens < b.least || tokens > b.prompt {
		return false, nil
	}
	if given, constant := o.Output.Constant(); !constant || given > 0 {
		// A length that was asked for may be short; it counts for the total
		// as it will be drawn, which only a constant tells now.
		return !constant || tokens+given <= b.total, nil
	}
	e.OutputTokens, err = o.countAnswer(ctx, e.answer)
	return e.OutputTokens >= b.least && tokens+e.OutputTokens <= b.total, err
}
