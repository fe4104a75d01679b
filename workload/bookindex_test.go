package workload

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/token"
)

// wordCounter counts perWord tokens for each word, one for the filler, and three for
// every text. It records the number of tokens counted.
type wordCounter struct {
	token.Estimate
	perWord func(word string) int
	counted atomic.Int64
}

func (c *wordCounter) Count(_ context.Context, text string) (int, error) {
	n := 3
	for w := range strings.FieldsSeq(text) {
		if w == strings.TrimSpace(filler) {
			n++
		} else {
			n += c.perWord(w)
		}
	}
	c.counted.Add(int64(n))
	return n, nil
}

// writeBook writes a book of words of 1 to 12 letters, with some punctuation and line
// breaks.
func writeBook(t *testing.T, words int) string {
	rng := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for range words {
		for range 1 + rng.IntN(12) {
			b.WriteByte(byte('b' + rng.IntN(25)))
		}
		b.WriteString([]string{" ", " ", " ", " ", ", ", ".\n", "\n\n"}[rng.IntN(7)])
	}
	path := filepath.Join(t.TempDir(), "book.txt")
	must.Do(t, os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}

func TestBookIsCountedLittleMoreThanOnce(t *testing.T) {
	c := &wordCounter{perWord: func(w string) int { return (len(w) + 3) / 4 }}
	const prompts, tokens = 50, 5000
	w := must.Get(newBook(t.Context(), Options{Path: writeBook(t, 20_000), Counter: c, Count: prompts, Input: Fixed(tokens), Output: Fixed(1), Seed: 3}))(t)
	// The book has about 40,000 tokens, which are counted once more.
	if got, most := c.counted.Load(), int64(prompts*tokens*3/2); got > most {
		t.Errorf("%d tokens counted for %d in the prompts: at most %d will do", got, prompts*tokens, most)
	}
	for i := range uint64(prompts) {
		s := must.Get(w.Session(i))(t)
		q := s.Turns[0].Request
		if n, _ := c.Count(t.Context(), q.Input.Text); n != tokens || q.InputTokens != n {
			t.Errorf("prompt %d has %d tokens and says %d, want %d", i, n, q.InputTokens, tokens)
		}
	}
}

func TestFillersMakeLengthsNoCutMakes(t *testing.T) {
	c := &wordCounter{perWord: func(string) int { return 2 }} // and 3 overhead, so the count is always odd
	w := must.Get(newBook(t.Context(), Options{Path: writeBook(t, 5_000), Counter: c, Count: 20, Input: Fixed(600), Output: Fixed(1), Seed: 3}))(t)
	for i := range uint64(20) {
		s := must.Get(w.Session(i))(t)
		if n, _ := c.Count(t.Context(), s.Turns[0].Request.Input.Text); n != 600 {
			t.Errorf("prompt %d has %d tokens, want 600", i, n)
		}
	}
	if notes := w.Notes(); notes != nil {
		t.Errorf("it says %q, though no prompt missed", notes)
	}
}

// TestPromptsAreNeverEmpty checks a server whose template has more tokens than requested:
// the prompt is not empty, and a note reports it.
func TestPromptsAreNeverEmpty(t *testing.T) {
	c := &wordCounter{perWord: func(string) int { return 1 }}
	w := must.Get(newBook(t.Context(), Options{Path: writeBook(t, 500), Counter: c, Count: 2, Input: Fixed(2), Output: Fixed(1), Seed: 3}))(t)
	for i := range uint64(2) {
		for range 2 { // when fitted, and when generated again
			s, err := w.Session(i)
			if q := s.Turns[0].Request; err != nil || q.Input.Text == "" || q.InputTokens != 4 {
				t.Errorf("prompt %q of %d tokens, %v", q.Input.Text, q.InputTokens, err)
			}
		}
	}
	if notes := strings.Join(w.Notes(), ""); !strings.Contains(notes, "by up to +2") {
		t.Errorf("it says %q", notes)
	}
}
