package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"

	"tacho"
)

var random = Kind{
	Name: "random", Doc: "random tokens of a given number: token ids where the backend takes them, else words",
	Endless: true, Tokens: true, Scenarios: true, New: newRandom,
	options:  func(d *Dataset, o *Options) { d.randomFlags.options(o) },
	check:    func(d *Dataset) error { return d.batchFlags.check(&d.randomFlags) },
	requests: func(d *Dataset, prompts int) int { return inBatches(prompts, d.RandomBatchSize) },
}

// randomFlags are the options of the datasets of random words.
type randomFlags struct {
	RandomInputLen   Length  `flag:"random-input-len" default:"1024" help:"random: prompt tokens"`
	RandomOutputLen  Length  `flag:"random-output-len" default:"128" help:"random: output tokens"`
	RandomRangeRatio Ratios  `flag:"random-range-ratio" help:"random: lengths vary by this share up and down, or {\"input\":R,\"output\":R}"`
	RandomPrefixLen  int     `flag:"random-prefix-len" most:"tokens" help:"random: extra tokens at the start that all prompts share"`
	RandomPrefixes   int     `flag:"random-num-prefixes" most:"ranks" help:"+ random: number of different shared prefixes; each prompt has one of them"`
	RandomPrefixZipf float64 `flag:"random-prefix-zipf" help:"+ random: Zipf exponent that makes some prefixes more popular; 0 makes all equally popular"`
	batchFlags
	CacheHit   float64 `flag:"random-cache-hit-fraction" help:"+ random: share of the prompts that begin with a prefix they all have in common; the others have none"`
	CacheRatio float64 `flag:"random-cache-ratio" help:"+ random: share of such a prompt that is the prefix; --random-input-len is the length of the whole prompt"`

	RandomVocab int  `flag:"random-vocab-size" help:"+ random: draw token ids below this; it must not exceed the model's vocabulary"`
	PromptText  bool `flag:"prompt-text" help:"+ random: send text even where the backend takes token ids"`
	PromptIDs   bool `flag:"prompt-token-ids" help:"+ random: send token ids and nothing else; without it they are sent where the backend takes them, and text where the server refuses them"`
}

// options are those of random and random_mm.
func (f *randomFlags) options(o *Options) {
	o.Input, o.Output, o.Prefix, o.Prefixes = f.RandomInputLen, f.RandomOutputLen, f.RandomPrefixLen, f.RandomPrefixes
	o.InRatio, o.OutRatio, o.Batch, o.IgnoreEOS = f.RandomRangeRatio.Input, f.RandomRangeRatio.Output, f.RandomBatchSize, true
}

// Ratios are how far lengths vary, of prompts and of outputs.
type Ratios struct{ Input, Output float64 }

// UnmarshalText reads one number for both, or {"input":R,"output":R}.
func (r *Ratios) UnmarshalText(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err == nil {
		*r = Ratios{f, f}
		return nil
	}
	var o struct{ Input, Output *float64 }
	if json.Unmarshal(b, &o) != nil || o.Input == nil || o.Output == nil {
		return errors.New(`write one number, or {"input":0.1,"output":0.2}`)
	}
	*r = Ratios{*o.Input, *o.Output}
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (r Ratios) MarshalText() ([]byte, error) {
	if r.Input == r.Output {
		return fmt.Append(nil, r.Input), nil
	}
	return fmt.Appendf(nil, `{"input":%v,"output":%v}`, r.Input, r.Output), nil
}

const (
	// minTokenID keeps clear of the control tokens and single bytes that open
	// most vocabularies.
	minTokenID = 1000
	// leastVocab is the smallest vocabulary that prompts are drawn from.
	leastVocab = 8
	// defaultVocab is below the size of every vocabulary in common use (the
	// smallest, of 32,000 tokens, is Llama 2's).
	defaultVocab = 30_000
	// prefixIndex is the random stream of the first shared prefix; those of
	// the others lie below it.
	prefixIndex = uint64(1)<<62 - 1
)

// An idRange is the token ids that prompts are made of.
type idRange struct{ first, count int }

// idsBelow are the ids to draw from a vocabulary of that size; 0 stands for the
// usual size. The first ones are left out, for control tokens are there: an
// eighth of a small vocabulary.
func idsBelow(size int) idRange {
	if size == 0 {
		size = defaultVocab
	}
	first := minTokenID
	if size < 2*minTokenID {
		first = size / 8
	}
	return idRange{first, size - first}
}

func (v idRange) draw(r *rand.Rand) int32 { return int32(v.first + r.IntN(v.count)) }

// append draws n ids, as draw does, for those who draw millions.
func (v idRange) append(ids []int32, r *rand.PCG, n int) []int32 {
	count := uint64(v.count)
	if count&(count-1) == 0 {
		one := rand.New(r)
		for range n {
			ids = append(ids, v.draw(one))
		}
		return ids
	}
	for range n {
		high, low := bits.Mul64(r.Uint64(), count)
		for low < count && low < -count%count { // as rand.Rand does, for all to be as likely
			high, low = bits.Mul64(r.Uint64(), count)
		}
		ids = append(ids, int32(v.first)+int32(high))
	}
	return ids
}

// A drawn workload makes prompts of random tokens, which no cache has seen,
// behind a prefix that some of them share.
type drawn struct {
	Options
	ids     idRange
	end     uint64                                       // sessions there are; 0 is no end
	lengths func(i uint64, r *rand.Rand) (in, out int)   // of session i, the prefix not counted
	group   func(i uint64, r *rand.Rand) (prefix uint64) // which prefix session i has
	openers *fitted                                      // the prefixes, where they are texts
	around  int                                          // tokens around a text, which are in its count
	*fitted
}

func newRandom(ctx context.Context, o Options) (Workload, error) {
	var err error
	if o.Input, err = o.Input.around(o.InRatio, 0); err == nil {
		o.Output, err = o.Output.around(o.OutRatio, 1)
	}
	if err != nil {
		return nil, fmt.Errorf("random: %w", err)
	}
	if least := o.Input.least(); o.Prefix+least < 1 && !o.Scenario.Given() && !varies(o.Input) {
		return nil, fmt.Errorf("random: prompts of %d tokens are too short: at least 1 is needed (--random-input-len)", o.Prefix+least)
	}
	w, err := newDrawn(ctx, "random", o)
	if err != nil {
		return nil, err
	}
	w.group = w.popular()
	if o.Batch > 1 {
		w.Unread = false // they are put together
		return batched{w, uint64(o.Batch), uint64(o.Count)}, w.prepare()
	}
	return w, w.prepare()
}

// varies says whether l is a distribution without a bound below.
func varies(l Length) bool { return l.kind != nil && l.kind.name != "uniform" }

// newDrawn is a drawn workload of the lengths of o. The caller may change its
// functions, and then calls prepare.
func newDrawn(ctx context.Context, name string, o Options) (*drawn, error) {
	if o.Vocab != 0 && o.Vocab < leastVocab {
		return nil, fmt.Errorf("%s: a vocabulary of %d tokens is too small, at least %d are needed (--random-vocab-size), or send text (--prompt-text)", name, o.Vocab, leastVocab)
	}
	w := &drawn{Options: o, ids: idsBelow(o.Vocab), fitted: newFitted(ctx, o.Counter), openers: newFitted(ctx, o.Counter)}
	if o.Prefix > 0 && !o.IDs {
		var err error
		if w.around, err = aroundText(ctx, o.Counter); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	w.group = func(uint64, *rand.Rand) uint64 { return 0 }
	w.lengths = func(_ uint64, r *rand.Rand) (in, out int) {
		if w.Scenario.Given() {
			return w.Scenario.Draw(r)
		}
		return w.Input.Draw(r, max(1-w.Prefix, 0)), w.Output.Draw(r, 1)
	}
	return w, nil
}

// popular chooses among several prefixes, all alike or by Zipf's law.
func (w *drawn) popular() func(i uint64, r *rand.Rand) uint64 {
	n := max(w.Prefixes, 1)
	if n == 1 {
		return w.group
	}
	sums := zipfSums(w.Zipf, n)
	return func(_ uint64, r *rand.Rand) uint64 { return uint64(pick(sums, r)) }
}

// exactly says whether a text of n tokens can be made without counting.
func (w *drawn) exactly(n int) bool { return w.Exact != nil && w.Prefix == 0 && n > 1 }

// prepare makes the texts of the run ready; what needs no counting needs no
// preparing.
func (w *drawn) prepare() error {
	if w.IDs || w.exactly(2) {
		return nil
	}
	return w.ready(w.Count, w.Progress, func(i uint64) error { _, err := w.Session(i); return err })
}

// Session implements tacho.Source.
func (w *drawn) Session(i uint64) (tacho.Session, error) {
	if w.end > 0 && i >= w.end && i < warmupBase {
		return tacho.Session{}, io.EOF
	}
	stream := streamOf(w.Seed, i)
	rng := rand.New(stream)
	input, output := w.lengths(i, rng)
	q := tacho.Request{MaxTokens: output, IgnoreEOS: w.IgnoreEOS}
	opening := prefixIndex - w.group(i, rng)
	if w.IDs && w.Unread && w.IgnoreEOS { // how long an answer is, unless it is told, depends on the ids
		own := turnKey(w.Seed, 0) // the other classes of a mix have prompts of their own
		q.Input.Unread = []tacho.Unread{{Number: own ^ opening, Tokens: w.Prefix}, {Number: own ^ i, Tokens: input}}
		q.InputTokens = w.Prefix + input
		return single(i, q), nil
	}
	if w.IDs {
		q.Input.IDs = w.ids.append(w.ids.append(make([]int32, 0, w.Prefix+input), streamOf(w.Seed, opening), w.Prefix), stream, input)
		q.InputTokens = len(q.Input.IDs)
		return single(i, q), nil
	}
	if w.exactly(input) {
		q.Input.Text, q.InputTokens = w.Exact(i, input), input
		return single(i, q), nil
	}
	prefix, err := w.prefix(opening)
	if err != nil {
		return tacho.Session{}, err
	}
	seed := rng.Uint64()
	q.Input.Text, q.InputTokens, err = w.text(i, w.Prefix+input, asMany(input),
		func(n int) string { return prefixed(prefix, seed, n, math.MaxInt) },
		func(bytes int) string { return prefixed(prefix, seed, math.MaxInt, bytes) })
	return single(i, q), err
}

// prefix is the text that prompts share, of as many tokens as asked for. What the
// counter puts around a prompt is not among these.
func (w *drawn) prefix(opening uint64) (string, error) {
	if w.Prefix == 0 {
		return "", nil
	}
	m, _, err := w.openers.words(w.Seed, opening, w.Prefix+w.around)
	return m.Content, err
}

// Warmup implements Workload. Its prefix is one that no session has.
func (w *drawn) Warmup(i uint64) (tacho.Session, error) {
	alone := *w
	alone.group = func(uint64, *rand.Rand) uint64 { return 1<<40 + i }
	return alone.Session(warmupBase + i)
}

// Notes implements Workload.
func (w *drawn) Notes() []string { return w.notes() }

// prefixed is the shared prefix and then words drawn by seed. It ends after n
// words or at the given number of bytes, whichever comes first.
func prefixed(prefix string, seed uint64, n, bytes int) string {
	var b strings.Builder
	b.WriteString(prefix)
	rng := rand.New(rand.NewPCG(seed, 0))
	for k := 0; k < n && b.Len() < bytes; k++ {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(commonWords[rng.IntN(len(commonWords))])
	}
	return b.String()
}
