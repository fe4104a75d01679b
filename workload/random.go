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

	"github.com/tacho-bench/tacho"
)

var random = Kind{
	Name: "random", Doc: "random prompts with an exact number of tokens: token ids if the backend accepts them, otherwise words",
	Endless: true, Tokens: true, Scenarios: true, New: newRandom,
	options:  func(d *Dataset, o *Options) { d.randomFlags.options(o) },
	check:    func(d *Dataset) error { return d.batchFlags.check(&d.randomFlags) },
	requests: func(d *Dataset, prompts int) int { return inBatches(prompts, d.RandomBatchSize) },
}

// randomFlags are the options of the datasets of random words.
type randomFlags struct {
	RandomInputLen   Length  `flag:"random-input-len" default:"1024" help:"random: prompt tokens"`
	RandomOutputLen  Length  `flag:"random-output-len" default:"128" help:"random: output tokens"`
	RandomRangeRatio Ratios  `flag:"random-range-ratio" help:"random: relative variation of the lengths, up and down, or {\"input\":R,\"output\":R}"`
	RandomPrefixLen  int     `flag:"random-prefix-len" most:"tokens" help:"random: tokens of a prefix shared by all prompts, in addition to --random-input-len"`
	RandomPrefixes   int     `flag:"random-num-prefixes" most:"ranks" help:"+ random: number of different shared prefixes; each prompt uses one"`
	RandomPrefixZipf float64 `flag:"random-prefix-zipf" help:"+ random: Zipf exponent of prefix popularity; 0 makes all equally popular"`
	batchFlags
	CacheHit   float64 `flag:"random-cache-hit-fraction" help:"+ random: fraction of the prompts with a common prefix"`
	CacheRatio float64 `flag:"random-cache-ratio" help:"+ random: length of the common prefix as a fraction of --random-input-len, the length of the complete prompt"`

	RandomVocab int  `flag:"random-vocab-size" help:"+ random: upper limit of token ids; must not exceed the model's vocabulary"`
	PromptText  bool `flag:"prompt-text" help:"+ random: send text even if the backend accepts token ids"`
	PromptIDs   bool `flag:"prompt-token-ids" help:"+ random: send only token ids; by default text is sent if backend or server reject ids"`
}

// options sets the options of random and random_mm.
func (f *randomFlags) options(o *Options) {
	o.Input, o.Output, o.Prefix, o.Prefixes = f.RandomInputLen, f.RandomOutputLen, f.RandomPrefixLen, f.RandomPrefixes
	o.InRatio, o.OutRatio, o.Batch, o.IgnoreEOS = f.RandomRangeRatio.Input, f.RandomRangeRatio.Output, f.RandomBatchSize, true
}

// Ratios are the relative variations of prompt and output lengths.
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
	// minTokenID skips the control tokens and single bytes at the beginning of most
	// vocabularies.
	minTokenID = 1000
	// minVocab is the smallest vocabulary for random prompts.
	minVocab = 8
	// defaultVocab is less than the size of every common vocabulary. The smallest is
	// Llama 2's with 32,000 tokens.
	defaultVocab = 30_000
	// prefixIndex is the random stream of the first shared prefix. The streams of other
	// prefixes are below it.
	prefixIndex = uint64(1)<<62 - 1
)

// idRange is the range of token ids used in prompts.
type idRange struct{ first, count int }

// idsBelow returns the ids to draw from a vocabulary of the given size; 0 means
// defaultVocab. It leaves out the first ids because they are control tokens. In a small
// vocabulary it leaves out an eighth.
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

// append draws n ids with the same result as draw, but faster.
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
		for low < count && low < -count%count { // rejection sampling like rand.Rand, for a uniform distribution
			high, low = bits.Mul64(r.Uint64(), count)
		}
		ids = append(ids, int32(v.first)+int32(high))
	}
	return ids
}

// drawn makes prompts of random tokens after a prefix that some prompts share. The random
// tokens are in no cache.
type drawn struct {
	Options
	ids      idRange
	end      uint64                                       // number of sessions; 0 means unlimited
	lengths  func(i uint64, r *rand.Rand) (in, out int)   // lengths of session i without the prefix
	group    func(i uint64, r *rand.Rand) (prefix uint64) // prefix of session i
	openers  *textFitter                                  // fits the prefixes if they are text
	overhead int                                          // tokens the counter adds to a text
	*textFitter
}

func newRandom(ctx context.Context, o Options) (Workload, error) {
	var err error
	if o.Input, err = o.Input.within(o.InRatio, 0); err == nil {
		o.Output, err = o.Output.within(o.OutRatio, 1)
	}
	if err != nil {
		return nil, fmt.Errorf("random: %w", err)
	}
	if least := o.Input.minimum(); o.Prefix+least < 1 && !o.Scenario.Given() && !varies(o.Input) {
		return nil, fmt.Errorf("random: prompts of %d tokens are too short; --random-input-len must be at least 1", o.Prefix+least)
	}
	w, err := newDrawn(ctx, "random", o)
	if err != nil {
		return nil, err
	}
	w.group = w.popular()
	if o.Batch > 1 {
		return batched{w, uint64(o.Batch), uint64(o.Count)}, w.prepare()
	}
	return w, w.prepare()
}

// varies reports whether l is a distribution without a lower limit.
func varies(l Length) bool { return l.kind != nil && l.kind.name != "uniform" }

// newDrawn returns a drawn workload with the lengths of o. The caller may replace its
// functions and must then call prepare.
func newDrawn(ctx context.Context, name string, o Options) (*drawn, error) {
	if o.Vocab != 0 && o.Vocab < minVocab {
		return nil, fmt.Errorf("%s: a vocabulary of %d tokens is too small; set --random-vocab-size to at least %d, or send text with --prompt-text", name, o.Vocab, minVocab)
	}
	w := &drawn{Options: o, ids: idsBelow(o.Vocab), textFitter: newTextFitter(ctx, o.Counter), openers: newTextFitter(ctx, o.Counter)}
	if o.Prefix > 0 && !o.IDs {
		var err error
		if w.overhead, err = textOverhead(ctx, o.Counter); err != nil {
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

// popular returns a function that picks a prefix, uniformly or by Zipf's law.
func (w *drawn) popular() func(i uint64, r *rand.Rand) uint64 {
	n := max(w.Prefixes, 1)
	if n == 1 {
		return w.group
	}
	sums := zipfSums(w.Zipf, n)
	return func(_ uint64, r *rand.Rand) uint64 { return uint64(pick(sums, r)) }
}

// exactly reports whether a text of n tokens can be made without counting.
func (w *drawn) exactly(n int) bool { return w.Exact != nil && w.Prefix == 0 && n > 1 }

// prepare fits the texts of the run in advance, unless no counting is needed.
func (w *drawn) prepare() error {
	if w.IDs || w.exactly(2) {
		return nil
	}
	return w.precompute(w.Count, w.Progress, func(i uint64) error { _, err := w.Session(i); return err })
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
	q.Input.Text, q.InputTokens, err = w.text(i, w.Prefix+input, oneTokenPerWord(input),
		func(n int) string { return prefixed(prefix, seed, n, math.MaxInt) },
		func(bytes int) string { return prefixed(prefix, seed, math.MaxInt, bytes) })
	return single(i, q), err
}

// prefix returns a shared text of Prefix tokens, not including the tokens the counter
// adds to a prompt.
func (w *drawn) prefix(opening uint64) (string, error) {
	if w.Prefix == 0 {
		return "", nil
	}
	m, _, err := w.openers.words(w.Seed, opening, w.Prefix+w.overhead)
	return m.Content, err
}

// Warmup implements Workload. It uses a prefix that no session uses.
func (w *drawn) Warmup(i uint64) (tacho.Session, error) {
	alone := *w
	alone.group = func(uint64, *rand.Rand) uint64 { return 1<<40 + i }
	return alone.Session(warmupBase + i)
}

// Notes implements Workload.
func (w *drawn) Notes() []string { return w.notes() }

// prefixed returns the shared prefix followed by words drawn by seed. It stops after n
// words or at the given number of bytes, whichever is first.
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
