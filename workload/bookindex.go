package workload

import (
	"context"
	"sync"

	"tacho/token"
)

// cellBytes is about how long the cells of an index are: long enough for few
// counts, short enough for the first and last of a slice to cost little.
const cellBytes = 1024

// A bookIndex tells how long a slice of a book must be to have so many tokens.
// It counts the book once, in cells. A text that is cut between words has very
// nearly as many tokens as its parts together, so of each slice only the two
// ends are counted. Where a server counts, it is then asked once for a whole
// slice, instead of four or five times.
type bookIndex struct {
	pages   string
	counter token.Counter
	starts  []int // of the cells, in pages; the first is 0

	mu     sync.Mutex
	tokens []int // of the cells, with what the counter puts around; 0 is not counted yet
	around int   // tokens that the counter puts around a text
	framed bool  // around is known
}

func newBookIndex(pages string, c token.Counter) *bookIndex {
	x := &bookIndex{pages: pages, counter: c}
	for at := 0; at < len(pages); {
		x.starts = append(x.starts, at)
		at = betweenWords(pages, at+cellBytes)
	}
	x.tokens = make([]int, len(x.starts))
	return x
}

// betweenWords is the first place after at where a single space parts two
// words, or the end. No tokenizer joins anything across it, which many do
// across line breaks and punctuation.
func betweenWords(text string, at int) int {
	isLetter := func(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
	for ; at < len(text)-1; at++ {
		if text[at] == ' ' && isLetter(text[at-1]) && isLetter(text[at+1]) {
			return at
		}
	}
	return len(text)
}

// bytes is how many bytes from start on have very nearly n tokens, and false
// where n is so few that counting the cells around it would not pay.
func (x *bookIndex) bytes(ctx context.Context, start, n int) (int, bool, error) {
	if float64(n)*bytesPerToken < 2*cellBytes || len(x.starts) < 3 {
		return 0, false, nil
	}
	around, err := x.frame(ctx)
	if err != nil {
		return 0, false, err
	}
	cell := 0
	for cell < len(x.starts) && x.starts[cell] <= start {
		cell++
	}
	length := x.end(cell-1) - start
	edge, err := x.counter.Count(ctx, x.pages[start:start+length])
	if err != nil {
		return 0, false, err
	}
	left := n - edge // what the cells from here on must have between them
	for ; left > 0; cell++ {
		cell %= len(x.starts)
		tokens, err := x.cell(ctx, cell)
		if err != nil {
			return 0, false, err
		}
		if tokens-around > left {
			tail, err := x.tail(ctx, cell, left+around, tokens)
			return length + tail, true, err
		}
		if tokens == around {
			return 0, false, nil // a counter that does not grow with the text
		}
		left -= tokens - around
		length += x.end(cell) - x.starts[cell]
	}
	return length, true, nil
}

// tail is how many bytes of a cell, which has all tokens, have n.
func (x *bookIndex) tail(ctx context.Context, cell, n, all int) (int, error) {
	text := x.pages[x.starts[cell]:x.end(cell)]
	cut, _, err := token.Fit(ctx, x.counter, n, len(text)*n/all, func(bytes int) string {
		return wholeRunes(text, bytes)
	})
	return len(cut), err
}

func (x *bookIndex) end(cell int) int {
	if cell+1 < len(x.starts) {
		return x.starts[cell+1]
	}
	return len(x.pages)
}

// cell is the tokens of a cell. Two that count the same one find the same.
func (x *bookIndex) cell(ctx context.Context, i int) (int, error) {
	x.mu.Lock()
	n := x.tokens[i]
	x.mu.Unlock()
	if n > 0 {
		return n, nil
	}
	n, err := x.counter.Count(ctx, x.pages[x.starts[i]:x.end(i)])
	if err != nil {
		return 0, err
	}
	x.mu.Lock()
	x.tokens[i] = n
	x.mu.Unlock()
	return n, nil
}

// frame is how many tokens the counter puts around a text that begins with a
// space: two cells have them twice, and once when counted as one.
func (x *bookIndex) frame(ctx context.Context) (int, error) {
	x.mu.Lock()
	around, known := x.around, x.framed
	x.mu.Unlock()
	if known {
		return around, nil
	}
	sum := 0
	for i := range 2 {
		n, err := x.cell(ctx, 1+i)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	both, err := x.counter.Count(ctx, x.pages[x.starts[1]:x.end(2)])
	if err != nil {
		return 0, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.around, x.framed = sum-both, true
	return x.around, nil
}
