package token

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

func TestEstimate(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "abcd": 1, "abcde": 2, "你好你好": 1, "\xff": 1} {
		got, err := Estimate{}.Count(t.Context(), text)
		if err != nil || got != want {
			t.Errorf("Count(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	if (Estimate{}).Exact() {
		t.Error("an estimate says it is exact")
	}
}

// countFunc is a Counter that counts its calls.
type countFunc struct {
	count func(text string) int
	calls int
}

func (c *countFunc) Count(_ context.Context, text string) (int, error) {
	c.calls++
	n := c.count(text)
	if n < 0 {
		return 0, errors.New("no answer")
	}
	return n, nil
}
func (c *countFunc) Name() string { return "test" }
func (c *countFunc) Exact() bool  { return true }

func countWords(text string) int { return len(strings.Fields(text)) }

func wordsText(units int) string { return strings.Repeat("word ", units) }

func TestFit(t *testing.T) {
	for _, test := range []struct {
		name     string
		count    func(string) int
		want     int
		guess    int
		got      int // the best count that exists
		maxCalls int
	}{
		{"words, good guess", countWords, 100, 100, 100, 1},
		{"words, bad guess", countWords, 1000, 3, 1000, 2},
		{"words, guess too high", countWords, 7, 5000, 7, 2},
		{"nothing asked for", countWords, 0, 10, 0, 2},
		{"guess below zero", countWords, 5, -3, 5, 4},
		{"three tokens in two words", func(s string) int { return countWords(s) * 3 / 2 }, 999, 999, 999, 4},
		{"a token in front", func(s string) int { return 1 + 2*countWords(s)/3 }, 5000, 100, 5000, 5},
		{"two tokens a word, odd number", func(s string) int { return 2 * countWords(s) }, 11, 4, 10, fitMaxCalls},
		{"never grows", func(string) int { return 3 }, 10, 10, 3, fitMaxCalls},
		{"not monotone", func(s string) int { return countWords(s) + []int{0, 3, -2, 1, 0, -1, 2}[countWords(s)%7] }, 323, 300, 323, 10},
		{"jumps", func(s string) int {
			n := countWords(s)
			if n > 500 {
				n += 50
			}
			return n
		}, 520, 400, 500, fitMaxCalls},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &countFunc{count: test.count}
			text, got, err := Fit(t.Context(), c, test.want, test.guess, wordsText)
			must.Do(t, err)
			if got != test.got || test.count(text) != got {
				t.Errorf("a text of %d tokens that is said to have %d, want %d", test.count(text), got, test.got)
			}
			if c.calls > test.maxCalls {
				t.Errorf("%d counts, want at most %d", c.calls, test.maxCalls)
			}
		})
	}
}

func TestFitEstimateIsExactAndCheap(t *testing.T) {
	c := &countFunc{count: func(s string) int { n, _ := Estimate{}.Count(context.Background(), s); return n }}
	text, got, err := Fit(t.Context(), c, 1000, 1000, func(units int) string { return strings.Repeat("ab ", units) })
	if err != nil || got != 1000 {
		t.Fatalf("%d tokens, %v", got, err)
	}
	if c.calls > 4 {
		t.Errorf("%d counts, want at most 4", c.calls)
	}
	again, _, _ := Fit(t.Context(), c, 1000, 1000, func(units int) string { return strings.Repeat("ab ", units) })
	if text != again {
		t.Error("two runs give two texts")
	}
}

func TestFitErrors(t *testing.T) {
	if _, _, err := Fit(t.Context(), &countFunc{count: countWords}, -1, 0, wordsText); err == nil {
		t.Error("-1 tokens: no error")
	}
	if _, _, err := Fit(t.Context(), &countFunc{count: func(string) int { return -1 }}, 5, 5, wordsText); err == nil {
		t.Error("counter that fails: no error")
	}
}
