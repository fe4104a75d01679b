package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
)

var prefixRepetition = Kind{
	Name: "prefix_repetition", Doc: "a number of prefixes, each with the same number of different suffixes, in random order",
	Tokens: true, New: newPrefixRepetition,
	options: func(d *Dataset, o *Options) {
		o.Input, o.Output = d.RepetitionSuffix, d.RepetitionOutput
		o.Prefix, o.Prefixes = d.RepetitionPrefix, d.RepetitionCount
	},
}

// repetitionFlags are the options of prefix_repetition.
type repetitionFlags struct {
	RepetitionPrefix int    `flag:"prefix-repetition-prefix-len" default:"256" most:"tokens" help:"prefix_repetition: tokens of a prefix"`
	RepetitionSuffix Length `flag:"prefix-repetition-suffix-len" default:"256" help:"prefix_repetition: tokens after the prefix"`
	RepetitionCount  int    `flag:"prefix-repetition-num-prefixes" default:"10" most:"ranks" help:"prefix_repetition: number of different prefixes"`
	RepetitionOutput Length `flag:"prefix-repetition-output-len" default:"128" help:"prefix_repetition: output tokens"`
}

// newPrefixRepetition gives every prefix the same number of prompts. It drops the
// remainder of the requested prompts and adds a note.
func newPrefixRepetition(ctx context.Context, o Options) (Workload, error) {
	prefixes := max(o.Prefixes, 1)
	each := o.Count / prefixes
	if each < 1 {
		return nil, fmt.Errorf("prefix_repetition: %d prompts for %d prefixes; each prefix needs at least one (--num-prompts, --prefix-repetition-num-prefixes)", o.Count, prefixes)
	}
	if o.Prefix+o.Input.minimum() < 1 && !varies(o.Input) {
		return nil, fmt.Errorf("prefix_repetition: prompts of %d tokens are too short; at least 1 is needed (--prefix-repetition-prefix-len, --prefix-repetition-suffix-len)", o.Prefix+o.Input.minimum())
	}
	planned := o.Count
	o.Count = each * prefixes
	w, err := newDrawn(ctx, "prefix_repetition", o)
	if err != nil {
		return nil, err
	}
	w.end = uint64(o.Count)
	w.group = func(i uint64, _ *rand.Rand) uint64 { return i % w.end / uint64(each) }
	if o.Shuffle {
		order := rngOf(o.Seed, prefixIndex+1).Perm(o.Count)
		w.group = func(i uint64, _ *rand.Rand) uint64 { return uint64(order[i%w.end] / each) }
	}
	if err := w.prepare(); err != nil {
		return nil, err
	}
	if o.Count == planned {
		return w, nil
	}
	return withNote{w, fmt.Sprintf("%d of %d prompts were dropped because %d prefixes get %d each; set --num-prompts to a multiple of the prefixes", planned-o.Count, planned, prefixes, each)}, nil
}

// withNote adds a note to a workload.
type withNote struct {
	Workload
	note string
}

func (n withNote) Notes() []string { return append(n.Workload.Notes(), n.note) }
