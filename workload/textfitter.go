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

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/token"
)

// fitWorkers is the number of prompts prepared concurrently.
const fitWorkers = 8

// textFitter makes texts with an exact number of tokens. For each session it remembers
// only the length it found. The text is generated again when it is sent, so prepared
// prompts take no memory.
type textFitter struct {
	ctx     context.Context // context of the run, because counting may call a server
	counter token.Counter
	mu      sync.Mutex
	known   map[uint64]fit
}

// fit records how a text reached its length: its first bytes followed by fillers have
// this many tokens.
type fit struct{ bytes, fillers, tokens, want int }

// filler adds one token to almost any text.
const filler = " a"

func newTextFitter(ctx context.Context, c token.Counter) *textFitter {
	return &textFitter{ctx: ctx, counter: c, known: map[uint64]fit{}}
}

// text returns the text of session i with n tokens, and its number of tokens. units(u)
// returns a text of u units; guess returns the units for about n tokens. prefix(b)
// returns a text at least b bytes long.
func (f *textFitter) text(i uint64, n int, guess func() (int, error), units, prefix func(int) string) (string, int, error) {
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
		s, got, err = f.fitBytes(s, got, n, prefix)
	}
	if err == nil && s == "" { // the chat template alone has more tokens than requested
		s = units(1)
		got, err = f.counter.Count(f.ctx, s)
	}
	found := fit{len(s), 0, got, n}
	if err == nil && got != n {
		s, found, err = f.pad(s, found)
	}
	if err != nil {
		return "", 0, err
	}
	f.mu.Lock()
	f.known[i] = found
	f.mu.Unlock()
	return s, found.tokens, nil
}

// fitBytes cuts inside a unit if no number of complete units has the length, because a
// word may be several tokens. It starts from a text of similar length and keeps that text
// if it finds nothing better.
func (f *textFitter) fitBytes(near string, got, n int, prefix func(int) string) (string, int, error) {
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

// pad helps if no cut has the length: a run of white space may be one token, and two
// tokens if it is one byte shorter. pad removes a few words from the end of the text and
// appends fillers. It keeps the text if padding does not help.
func (f *textFitter) pad(near string, found fit) (string, fit, error) {
	cut := strings.TrimRightFunc(near, unicode.IsSpace)
	for range padTries {
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

// padTries is the maximum number of words pad removes.
const padTries = 4

// wholeRunes returns the first bytes of a text, extended to a complete character.
func wholeRunes(text string, bytes int) string {
	bytes = min(bytes, len(text))
	for bytes < len(text) && !utf8.RuneStart(text[bytes]) {
		bytes++
	}
	return text[:bytes]
}

// oneTokenPerWord is the guess for words, because almost every word is one token.
func oneTokenPerWord(n int) func() (int, error) { return func() (int, error) { return n, nil } }

// words returns a message of n tokens of random words, determined by seed and key.
func (f *textFitter) words(seed, key uint64, n int) (tacho.Message, int, error) {
	return f.wordsAfter("", 0, seed, key, n)
}

// wordsAfter returns a message of n tokens that starts with opening. opened is the
// approximate number of tokens of opening.
func (f *textFitter) wordsAfter(opening string, opened int, seed, key uint64, n int) (tacho.Message, int, error) {
	text, tokens, err := f.text(key, n, oneTokenPerWord(max(n-opened, 1)),
		func(units int) string { return prefixed(opening, key^seed, units, math.MaxInt) },
		func(bytes int) string { return prefixed(opening, key^seed, math.MaxInt, bytes) })
	return tacho.Message{Role: "user", Content: text}, tokens, err
}

// precompute prepares the first count sessions concurrently. Counting by a server takes
// time and must not overlap with the measurement.
func (f *textFitter) precompute(count int, progress func(done, all int), session func(i uint64) error) error {
	if f.counter == nil || count == 0 {
		return nil
	}
	var next, done atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, fitWorkers)
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
	return errs[i] // other errors are most likely the same
}

// notes reports prompts that missed the requested length.
func (f *textFitter) notes() []string {
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
	return []string{fmt.Sprintf("%d of %d prompts missed the requested length, by up to %+d tokens; use the input tokens counted by the server", missed, len(f.known), worst)}
}

func abs(x int) int { return max(x, -x) }
