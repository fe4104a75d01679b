package workload

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"tacho"
)

var random = Kind{
	Name: "random", Doc: "random tokens of a given number: token ids where the backend takes them, else words",
	New: newRandom,
}

const (
	// minTokenID keeps clear of the control tokens and single bytes that open
	// most vocabularies.
	minTokenID = 1000
	// defaultVocab is below the size of every vocabulary in common use (the
	// smallest, of 32,000 tokens, is Llama 2's).
	defaultVocab = 30_000
	// prefixIndex is the random stream of the shared prefix.
	prefixIndex = uint64(1)<<62 - 1
)

// randomWorkload draws prompts of random tokens, which no cache has seen.
type randomWorkload struct {
	Options
	prefix []int32
	*fitted
}

func newRandom(ctx context.Context, o Options) (Workload, error) {
	if o.Vocab == 0 {
		o.Vocab = defaultVocab
	}
	if o.Vocab <= minTokenID {
		return nil, fmt.Errorf("random: a vocabulary of %d tokens is too small, more than %d are needed", o.Vocab, minTokenID)
	}
	for _, r := range []float64{o.InRatio, o.OutRatio} {
		if !(r >= 0 && r < 1) {
			return nil, fmt.Errorf("random: range ratio %v must be at least 0 and below 1", r)
		}
	}
	if low, _ := spread(o.Input, o.InRatio); o.Prefix+low < 1 {
		return nil, fmt.Errorf("random: prompts of %d tokens are too short: at least 1 is needed (--random-input-len)", o.Prefix+low)
	}
	w := &randomWorkload{Options: o, fitted: newFitted(ctx, o.Counter)}
	if o.IDs {
		w.prefix = w.ids(rngOf(o.Seed, prefixIndex), o.Prefix)
		return w, nil
	}
	return w, w.ready(o.Count, o.Progress, func(i uint64) error { _, err := w.Session(i); return err })
}

// spread is the range of lengths around n: from floor(n(1-r)) to ceil(n(1+r)).
func spread(n int, ratio float64) (low, high int) {
	return int(math.Floor(float64(n) * (1 - ratio))), int(math.Ceil(float64(n) * (1 + ratio)))
}

// draw is a length from that range, each equally likely.
func draw(r *rand.Rand, n int, ratio float64, least int) int {
	low, high := spread(n, ratio)
	low, high = max(low, least), max(high, least)
	return low + r.IntN(high-low+1)
}

// Session implements tacho.Source.
func (w *randomWorkload) Session(i uint64) (tacho.Session, error) {
	rng := rngOf(w.Seed, i)
	input := draw(rng, w.Input, w.InRatio, 0)
	q := tacho.Request{MaxTokens: draw(rng, w.Output, w.OutRatio, 1), IgnoreEOS: w.IgnoreEOS}
	if w.IDs {
		q.Input.IDs = append(w.prefix[:len(w.prefix):len(w.prefix)], w.ids(rng, input)...)
		q.InputTokens = len(q.Input.IDs)
		return single(i, q), nil
	}
	prefix := w.words(rngOf(w.Seed, prefixIndex), w.Prefix)
	seed := rng.Uint64()
	var err error
	q.Input.Text, q.InputTokens, err = w.text(i, w.Prefix+input, 1,
		func(n int) string { return w.prefixed(prefix, seed, n, math.MaxInt) },
		func(bytes int) string { return w.prefixed(prefix, seed, math.MaxInt, bytes) })
	return single(i, q), err
}

// Warmup implements Workload.
func (w *randomWorkload) Warmup(i uint64) (tacho.Session, error) { return w.Session(warmupBase + i) }

// Notes implements Workload.
func (w *randomWorkload) Notes() []string { return w.notes() }

func (w *randomWorkload) ids(r *rand.Rand, n int) []int32 {
	out := make([]int32, n)
	for j := range out {
		out[j] = int32(minTokenID + r.IntN(w.Vocab-minTokenID))
	}
	return out
}

// prefixed is the shared prefix and then words drawn by seed: n words in all,
// or so many that there are the given bytes, whichever comes first.
func (w *randomWorkload) prefixed(prefix []string, seed uint64, n, bytes int) string {
	var b strings.Builder
	rng := rand.New(rand.NewPCG(seed, 0))
	for k := 0; k < n && b.Len() < bytes; k++ {
		if k > 0 {
			b.WriteByte(' ')
		}
		if k < len(prefix) {
			b.WriteString(prefix[k])
		} else {
			b.WriteString(commonWords[rng.IntN(len(commonWords))])
		}
	}
	return b.String()
}

func (w *randomWorkload) words(r *rand.Rand, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = commonWords[r.IntN(len(commonWords))]
	}
	return out
}
