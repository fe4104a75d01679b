package workload

import (
	"context"
	"sync"

	"github.com/tacho-bench/tacho/token"
)

// cellBytes is the approximate size of an index cell. Cells are large enough to keep the
// number of counts low, and small enough to make counting the first and last cell of a
// slice cheap.
const cellBytes = 1024

// bookIndex estimates the length of a slice with a given number of tokens. It counts each
// cell of the book once. A text cut between words has almost as many tokens as its parts
// together, so for each slice only the two ends are counted. If a server counts, it
// receives each complete slice once instead of four or five times.
type bookIndex struct {
	pages   string
	counter token.Counter
	starts  []int // start offsets of the cells; the first is 0

	mu            sync.Mutex
	tokens        []int // tokens of each cell including overhead; 0 means not counted yet
	overhead      int   // tokens the counter adds to every text
	overheadKnown bool  // overhead is valid
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

// betweenWords returns the offset of the first single space between two words after at,
// or the end of the text. No tokenizer merges across such a space, but many merge across
// line breaks and punctuation.
func betweenWords(text string, at int) int {
	isLetter := func(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
	for ; at < len(text)-1; at++ {
		if text[at] == ' ' && isLetter(text[at-1]) && isLetter(text[at+1]) {
			return at
		}
	}
	return len(text)
}

// bytes returns the number of bytes from start with almost n tokens. It returns false if
// n is so small that counting the surrounding cells costs more than it saves.
func (x *bookIndex) bytes(ctx context.Context, start, n int) (int, bool, error) {
	if float64(n)*bytesPerToken < 2*cellBytes || len(x.starts) < 3 {
		return 0, false, nil
	}
	overhead, err := x.measureOverhead(ctx)
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
	left := n - edge // tokens still needed from the following cells
	for ; left > 0; cell++ {
		cell %= len(x.starts)
		tokens, err := x.cell(ctx, cell)
		if err != nil {
			return 0, false, err
		}
		if tokens-overhead > left {
			tail, err := x.tail(ctx, cell, left+overhead, tokens)
			return length + tail, true, err
		}
		if tokens == overhead {
			return 0, false, nil // a counter that does not grow with the text
		}
		left -= tokens - overhead
		length += x.end(cell) - x.starts[cell]
	}
	return length, true, nil
}

// tail returns the number of bytes of a cell with n tokens. The complete cell contains all
// tokens.
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

// cell returns the tokens of a cell. Concurrent calls may count the same cell twice, with
// the same result.
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

// measureOverhead returns the number of tokens the counter adds to a text that begins
// with a space. Two cells counted separately contain the overhead twice, counted together
// once.
func (x *bookIndex) measureOverhead(ctx context.Context) (int, error) {
	x.mu.Lock()
	overhead, known := x.overhead, x.overheadKnown
	x.mu.Unlock()
	if known {
		return overhead, nil
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
	x.overhead, x.overheadKnown = sum-both, true
	return x.overhead, nil
}
