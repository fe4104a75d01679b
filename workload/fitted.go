package workload

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"tacho"
	"tacho/token"
)

// fitters is how many prompts are fitted at once while they are made ready.
const fitters = 8

// fitted makes texts with an exact number of tokens. What it found for a
// session is remembered as a length: the text is made again when it is sent,
// so prompts that were made ready do not sit in memory.
type fitted struct {
	ctx     context.Context // of the run: counting may ask a server
	counter token.Counter
	mu      sync.Mutex
	known   map[uint64]fit
}

// A fit says how a text got its length: its first bytes, with some fillers after
// them, have this many tokens.
type fit struct{ bytes, fillers, tokens, want int }

// filler adds one token to nearly any text.
const filler = " a"

func newFitted(ctx context.Context, c token.Counter) *fitted {
	return &fitted{ctx: ctx, counter: c, known: map[uint64]fit{}}
}

// text is the text of session i with n tokens, and the tokens it has. units(u)
// makes a text of u units, of which guess has nearly n tokens; prefix(b) makes
// the one that is b bytes long.
func (f *fitted) text(i uint64, n int, guess func() (int, error), units, prefix func(int) string) (string, int, error) {
	f.mu.Lock()
	have, ok := f.known[i]
	f.mu.Unlock()
	if ok {
		return prefix(have.bytes)[:have.bytes] + strings.Repeat(filler, have.fillers), have.tokens, nil
	}
	nearly, err := guess()
	if err != nil {
		return "", 0, err
	}
	s, got, err := token.Fit(f.ctx, f.counter, n, nearly, units)
	if err == nil && got != n {
		s, got, err = f.mend(s, got, n, prefix)
	}
	if err == nil && s == "" { // what is around a prompt is more than was asked for
		s = units(1)
		got, err = f.counter.Count(f.ctx, s)
	}
	found := fit{len(s), 0, got, n}
	if err == nil && got != n {
		s, found, err = f.fill(s, found)
	}
	if err != nil {
		return "", 0, err
	}
	f.mu.Lock()
	f.known[i] = found
	f.mu.Unlock()
	return s, found.tokens, nil
}

// mend cuts within a unit where no number of whole units gives the length: a
// word may be several tokens. It starts from a text that is near, and keeps it if
// it finds nothing better.
func (f *fitted) mend(near string, got, n int, prefix func(int) string) (string, int, error) {
	perToken := float64(len(near)) / float64(max(got, 1))
	long := prefix(len(near) + int(8*perToken) + 64)
	s, mended, err := token.Fit(f.ctx, f.counter, n, len(near)+int(float64(n-got)*perToken), func(bytes int) string {
		return wholeRunes(long, bytes)
	})
	if err != nil || abs(mended-n) >= abs(got-n) {
		return near, got, err
	}
	return s, mended, nil
}

// fill helps where no cut gives the length: a run of white space may be one
// token, and two tokens if it is a byte shorter. It takes a little off the end of
// the text and puts fillers there. It keeps the text if that does not help.
func (f *fitted) fill(near string, found fit) (string, fit, error) {
	cut := strings.TrimRightFunc(near, unicode.IsSpace)
	for range fillTries {
		cut = cut[:max(strings.LastIndexFunc(cut, unicode.IsSpace), 0)]
		cut = strings.TrimRightFunc(cut, unicode.IsSpace)
		tokens, err := f.counter.Count(f.ctx, cut)
		if err != nil || cut == "" {
			return near, found, err
		}
		if tokens >= found.want {
			continue
		}
		filled := cut + strings.Repeat(filler, found.want-tokens)
		if tokens, err = f.counter.Count(f.ctx, filled); err != nil {
			return near, found, err
		}
		if tokens == found.want {
			return filled, fit{len(cut), (len(filled) - len(cut)) / len(filler), tokens, tokens}, nil
		}
	}
	return near, found, nil
}

// fillTries is how many words fill takes off.
const fillTries = 4

// wholeRunes is the first bytes of a text, or a few more: whole characters.
func wholeRunes(text string, bytes int) string {
	bytes = min(bytes, len(text))
	for bytes < len(text) && !utf8.RuneStart(text[bytes]) {
		bytes++
	}
	return text[:bytes]
}

// asMany is the guess for words: nearly each is one token.
func asMany(n int) func() (int, error) { return func() (int, error) { return n, nil } }

// words is a message of random words with n tokens, which seed and key make.
func (f *fitted) words(seed, key uint64, n int) (tacho.Message, int, error) {
	return f.wordsAfter("", 0, seed, key, n)
}

// wordsAfter is a message of n tokens that begins with an opening, of about so
// many of them.
func (f *fitted) wordsAfter(opening string, opened int, seed, key uint64, n int) (tacho.Message, int, error) {
	text, tokens, err := f.text(key, n, asMany(max(n-opened, 1)),
		func(units int) string { return prefixed(opening, key^seed, units, math.MaxInt) },
		func(bytes int) string { return prefixed(opening, key^seed, math.MaxInt, bytes) })
	return tacho.Message{Role: "user", Content: text}, tokens, err
}

// ready makes the first count sessions ready, several at once. Counting by a
// server takes a while, and must not go on while the server is measured.
func (f *fitted) ready(count int, progress func(done, all int), session func(i uint64) error) error {
	if f.counter == nil || count == 0 {
		return nil
	}
	var next, done atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, fitters)
	for w := range errs {
		wg.Go(func() {
			for errs[w] == nil {
				i := next.Add(1) - 1
				if i >= int64(count) {
					return
				}
				if errs[w] = f.ctx.Err(); errs[w] == nil {
					errs[w] = session(uint64(i))
				}
				if n := done.Add(1); progress != nil {
					progress(int(n), count)
				}
			}
		})
	}
	wg.Wait()
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if i < 0 {
		return nil
	}
	return errs[i] // the others are most likely the same
}

// notes tells of prompts that are not as long as they should be.
func (f *fitted) notes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	missed, worst := 0, 0
	for _, k := range f.known {
		if d := k.tokens - k.want; d != 0 {
			missed++
			if abs(d) > abs(worst) {
				worst = d
			}
		}
	}
	if missed == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d prompts missed the length asked for, the worst by %+d tokens; go by the input tokens that the server counts", missed, len(f.known), worst)}
}

func abs(x int) int { return max(x, -x) }
