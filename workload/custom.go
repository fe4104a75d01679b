package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

var custom = Kind{
	Name: "custom", Doc: `JSON lines of your own: {"prompt": "...", "output_tokens": 128} or {"messages": [...]}, with "tools", "images", "audio", or "turns" of a conversation`,
	reads:  [][]string{{"prompt"}, {"messages"}},
	Quotes: true, New: newCustom,
}

func newCustom(ctx context.Context, o Options) (Workload, error) {
	return newCustomOf(ctx, o, "custom", func(*entry) error { return nil })
}

// newCustomOf makes a workload of a file of lines, all of which pass need.
func newCustomOf(ctx context.Context, o Options, name string, need func(*entry) error) (Workload, error) {
	if o.Path == "" {
		return nil, fmt.Errorf("%s: no data: give a JSONL file with --dataset-path prompts.jsonl", name)
	}
	bad := badLines{skip: o.Trace.SkipBad}
	list := o.keeping()
	lines, err := openLines(o.Path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer lines.Close()
	for text := range lines.All {
		var e entry
		err := json.Unmarshal(text, &e)
		if err != nil {
			err = fmt.Errorf(`not a JSON object with a "prompt": %w`, err)
		} else {
			err = errors.Join(e.check(o.wantsData()), need(&e))
		}
		if err == nil {
			err = list.add(e, len(text))
		}
		if errors.Is(err, errEnough) {
			break
		}
		if err != nil && !errors.Is(err, errTooMuch) {
			err = bad.take(fmt.Errorf("%s:%d: %w", o.Path, lines.Number(), err))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(list.entries) == 0 {
		return nil, fmt.Errorf("%s: %s has no lines in it%s", name, o.Path, bad.also())
	}
	return newPool(ctx, o, list.entries, bad.notes()...)
}

// badLines counts the lines that could not be read.
type badLines struct {
	skip  bool // else the first one stops
	count int
	first error
}

// take is told what is wrong with a line and where it is: it stops at it, or
// counts it.
func (b *badLines) take(err error) error {
	if !b.skip {
		return fmt.Errorf("%w (--bad-lines skip goes on without it)", err)
	}
	if b.count == 0 {
		b.first = err
	}
	b.count++
	return nil
}

// notes tells how many lines were skipped, and why the first was.
func (b *badLines) notes() []string {
	if b.count == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d bad lines were skipped; the first: %v; mend them, or measure without", b.count, b.first)}
}

func (b *badLines) also() string {
	if b.count == 0 {
		return ""
	}
	return fmt.Sprintf(" that can be used: %d bad lines were skipped; the first: %v", b.count, b.first)
}
