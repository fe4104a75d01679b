package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/rows"
)

var book = Kind{
	Name: "book", Doc: "slices of a text file from random positions, with an exact number of tokens",
	reads:   [][]string{{".txt"}},
	Endless: true, New: newBook,
	options: func(d *Dataset, o *Options) { o.Input, o.Output = d.BookInputLen, d.BookOutputLen },
}

// bookFlags are the options of book.
type bookFlags struct {
	BookInputLen  Length `flag:"book-input-len" default:"1024" help:"+ book: prompt tokens"`
	BookOutputLen Length `flag:"book-output-len" default:"150" help:"+ book: output tokens"`
}

// bytesPerToken is a first estimate; counting corrects it.
const bytesPerToken = 4.4

// bookWorkload cuts slices out of a text. It treats the text as a ring: a slice that
// reaches the end continues at the beginning.
type bookWorkload struct {
	Options
	pages string
	index *bookIndex
	short atomic.Bool // set if a prompt was longer than the text
	cut   bool        // set if the file is longer than maxText
	*textFitter
}

func newBook(ctx context.Context, o Options) (Workload, error) {
	if o.Path == "" {
		return nil, errors.New("book: no text; set --dataset-path book.txt")
	}
	for _, l := range []Length{o.Input, o.Output} {
		if n, constant := l.Constant(); constant && n < 1 {
			return nil, fmt.Errorf("book: %v prompt tokens and %v output tokens; both must be at least 1 (--book-input-len, --book-output-len)", o.Input, o.Output)
		}
	}
	text, cut, err := rows.ReadText(o.Path, o.maxText())
	if err != nil {
		return nil, fmt.Errorf("book: %w", err)
	}
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("book: %s contains no text; set another file with --dataset-path", o.Path)
	}
	if !unicode.IsSpace(lastRune(text)) {
		text += "\n" // separates the last word from the first
	}
	w := &bookWorkload{Options: o, pages: text, index: newBookIndex(text, o.Counter), cut: cut, textFitter: newTextFitter(ctx, o.Counter)}
	return w, w.precompute(o.Count, o.Progress, func(i uint64) error { _, err := w.Session(i); return err })
}

func lastRune(s string) rune { r, _ := utf8.DecodeLastRuneInString(s); return r }

// Session implements tacho.Source.
func (w *bookWorkload) Session(i uint64) (tacho.Session, error) {
	rng := rngOf(w.Seed, i)
	start := w.wordStart(rng)
	input := w.Input.Draw(rng, 1)
	slice := func(bytes int) string { return w.slice(start, bytes) }
	q := tacho.Request{MaxTokens: w.Output.Draw(rng, 1), IgnoreEOS: w.IgnoreEOS}
	var err error
	q.Input.Text, q.InputTokens, err = w.text(i, input, func() (int, error) { return w.guess(start, input) }, slice, slice)
	if len(q.Input.Text) > len(w.pages) && i < warmupBase {
		w.short.Store(true)
	}
	return single(i, q), err
}

// Warmup implements Workload.
func (w *bookWorkload) Warmup(i uint64) (tacho.Session, error) { return w.Session(warmupBase + i) }

// Notes implements Workload.
func (w *bookWorkload) Notes() []string {
	notes := w.notes()
	if w.short.Load() {
		notes = append(notes, fmt.Sprintf("%s is shorter than the prompts, so prompts repeat it; use a longer text or a smaller --book-input-len", w.Path))
	}
	if w.cut {
		notes = append(notes, fmt.Sprintf("the prompts use only the first %d MiB of the book; split it into several files to use the rest", w.maxText()>>20))
	}
	return notes
}

// maxText returns the maximum number of bytes read from a text file.
func (o *Options) maxText() int { return int(cmp.Or(o.maxKept, 64<<20)) }

// guess estimates the length in bytes of a slice from start with n tokens.
func (w *bookWorkload) guess(start, n int) (int, error) {
	bytes, ok, err := w.index.bytes(w.ctx, start, n)
	if !ok {
		bytes = int(float64(n) * bytesPerToken)
	}
	return bytes, err
}

// wordStart returns a random offset at which a word begins.
func (w *bookWorkload) wordStart(r *rand.Rand) int {
	at := r.IntN(len(w.pages))
	space := strings.IndexFunc(w.pages[at:], unicode.IsSpace)
	if space < 0 {
		return 0
	}
	at += space
	word := strings.IndexFunc(w.pages[at:], func(r rune) bool { return !unicode.IsSpace(r) })
	if word < 0 {
		return 0
	}
	return at + word
}

// slice returns about n bytes from start, in complete characters. It wraps around at the
// end of the text.
func (w *bookWorkload) slice(start, n int) string {
	var b strings.Builder
	b.Grow(n + utf8.UTFMax)
	for b.Len() < n {
		rest := w.pages[start:]
		if left := n - b.Len(); left < len(rest) {
			for !utf8.RuneStart(rest[left]) {
				left++
			}
			rest = rest[:left]
		}
		b.WriteString(rest)
		start = 0
	}
	return b.String()
}
