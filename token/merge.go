package token

// scanLimit is the length up to which scanning all pairs is faster than a heap.
const scanLimit = 64

// mergeSymbols merges symbols in place and returns the number of symbols left. The pair
// with the best rank merges first; the leftmost pair wins a tie.
func mergeSymbols(merges *mergeTable, symbols []int32) int {
	if len(symbols) < 2 {
		return len(symbols)
	}
	if len(symbols) > scanLimit {
		return newMergeHeap(merges, symbols).run()
	}
	var pairs [scanLimit]uint64 // pairs[i] is the merge of symbols i and i+1
	n := len(symbols)
	for i := range n - 1 {
		pairs[i] = merges.get(symbols[i], symbols[i+1])
	}
	for {
		best, at := noMerge, -1
		for i, p := range pairs[:n-1] {
			if p>>32 < best>>32 {
				best, at = p, i
			}
		}
		if at < 0 {
			return n
		}
		symbols[at] = int32(uint32(best))
		copy(symbols[at+1:n], symbols[at+2:n])
		copy(pairs[at:n-1], pairs[at+1:n-1])
		n--
		if n == 1 {
			return 1
		}
		if at > 0 {
			pairs[at-1] = merges.get(symbols[at-1], symbols[at])
		}
		if at < n-1 {
			pairs[at] = merges.get(symbols[at], symbols[at+1])
		}
	}
}

// mergeHeap merges long words. It keeps a linked list of symbols and a heap of merges
// that were possible when they were pushed.
type mergeHeap struct {
	merges     *mergeTable
	symbols    []int32
	prev, next []int32
	heap       []candidate
}

// candidate is a merge of the symbol at pos with its right neighbour.
type candidate struct {
	merge uint64 // rank<<32 | merged id
	pos   int32
}

func (c candidate) before(d candidate) bool {
	if r, s := c.merge>>32, d.merge>>32; r != s {
		return r < s
	}
	return c.pos < d.pos
}

func newMergeHeap(merges *mergeTable, symbols []int32) *mergeHeap {
	n := len(symbols)
	links := make([]int32, 2*n)
	h := &mergeHeap{merges: merges, symbols: symbols, prev: links[:n], next: links[n:], heap: make([]candidate, 0, n)}
	for i := range int32(n) {
		h.prev[i], h.next[i] = i-1, i+1
	}
	h.next[n-1] = -1
	for i := range int32(n - 1) {
		h.push(i)
	}
	return h
}

// run merges until no pair merges, then closes the gaps.
func (h *mergeHeap) run() int {
	for len(h.heap) > 0 {
		c := h.pop()
		right := h.next[c.pos]
		if h.symbols[c.pos] == noToken || right < 0 {
			continue
		}
		// The neighbours may have merged since the push. The candidate is valid only if
		// its pair still merges into the same token.
		if m := h.merges.get(h.symbols[c.pos], h.symbols[right]); uint32(m) != uint32(c.merge) || m == noMerge {
			continue
		}
		h.symbols[c.pos] = int32(uint32(c.merge))
		h.symbols[right] = noToken
		after := h.next[right]
		h.next[c.pos] = after
		if after >= 0 {
			h.prev[after] = c.pos
			h.push(c.pos)
		}
		if before := h.prev[c.pos]; before >= 0 {
			h.push(before)
		}
	}
	n := 0
	for i := int32(0); i >= 0; i = h.next[i] {
		h.symbols[n] = h.symbols[i]
		n++
	}
	return n
}

// push adds the merge of the symbol at pos and its right neighbour, if that pair merges.
func (h *mergeHeap) push(pos int32) {
	m := h.merges.get(h.symbols[pos], h.symbols[h.next[pos]])
	if m == noMerge {
		return
	}
	h.heap = append(h.heap, candidate{m, pos})
	for i := len(h.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.heap[i].before(h.heap[parent]) {
			return
		}
		h.heap[i], h.heap[parent] = h.heap[parent], h.heap[i]
		i = parent
	}
}

func (h *mergeHeap) pop() candidate {
	top := h.heap[0]
	last := len(h.heap) - 1
	h.heap[0] = h.heap[last]
	h.heap = h.heap[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && h.heap[child+1].before(h.heap[child]) {
			child++
		}
		if !h.heap[child].before(h.heap[i]) {
			return top
		}
		h.heap[i], h.heap[child] = h.heap[child], h.heap[i]
		i = child
	}
}
