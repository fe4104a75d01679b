package step

// A blockTable holds the shared blocks. A fleet has millions of blocks, and each
// request acquires and releases dozens. Consecutive blocks with the same holders
// therefore form one extent, which is found by the hash of its first block.
type blockTable struct {
	n       int      // number of blocks
	extents []extent // the first is the sentinel of the LRU list; its next is evicted first
	unused  []int32  // free indices in extents
	used    int      // number of extents
	inner   int      // extents that do not begin at the start of a prompt
	buckets []int32  // open-addressing hash table of indices into extents; 0: empty. At most half full
}

// An extent is a run of consecutive blocks with the same holders. Without holders,
// its blocks are evicted from the last to the first.
type extent struct {
	hashes     []uint64
	inner      bool // does not begin at the start of a prompt
	holders    int32
	prev, next int32 // LRU list of extents without holders, in the order of their release
	tail       int32 // extent split off from this one; needed by holders from before the split
}

func newBlockTable() blockTable {
	return blockTable{extents: make([]extent, 1), buckets: make([]int32, 64)}
}

// bucket returns the bucket of a hash, or the empty bucket it belongs to.
func (t *blockTable) bucket(hash uint64) int {
	mask := len(t.buckets) - 1
	i := int(hash) & mask
	for t.buckets[i] != 0 && t.extents[t.buckets[i]].hashes[0] != hash {
		i = (i + 1) & mask
	}
	return i
}

// A blockRef is the position of a block: an extent and an index into the extent.
// The zero value refers to no block.
type blockRef struct{ extent, block int32 }

// first returns the block with the given hash if the block is the first of an extent.
func (t *blockTable) first(hash uint64) blockRef { return blockRef{t.buckets[t.bucket(hash)], 0} }

// after returns the position of block i of a prompt, given the position b of block
// i-1. A hash covers all preceding tokens, so the block either follows b in its
// extent or begins an extent.
func (t *blockTable) after(b blockRef, hashes []uint64, i int) blockRef {
	if own := t.extents[b.extent].hashes; b.extent != 0 && int(b.block)+1 < len(own) && own[b.block+1] == hashes[i] {
		return blockRef{b.extent, b.block + 1}
	}
	if i > 0 && t.inner == 0 {
		return blockRef{}
	}
	return t.first(hashes[i])
}

// add creates an extent of new blocks.
func (t *blockTable) add(hashes []uint64, inner bool) int32 {
	if 2*t.used >= len(t.buckets) {
		t.grow()
	}
	at := int32(len(t.extents))
	if last := len(t.unused) - 1; last >= 0 {
		at, t.unused = t.unused[last], t.unused[:last]
		t.extents[at] = extent{hashes: hashes, inner: inner}
	} else {
		t.extents = append(t.extents, extent{hashes: hashes, inner: inner})
	}
	if inner {
		t.inner++
	}
	t.buckets[t.bucket(hashes[0])] = at
	t.used++
	t.n += len(hashes)
	return at
}

func (t *blockTable) grow() {
	old := t.buckets
	t.buckets = make([]int32, 2*len(old))
	for _, at := range old {
		if at != 0 {
			t.buckets[t.bucket(t.extents[at].hashes[0])] = at
		}
	}
}

// cut leaves n blocks in an extent. The remaining blocks form a new extent, which
// has the same holders or is evicted before the first.
func (t *blockTable) cut(at int32, n int) {
	whole := t.extents[at]
	if n == len(whole.hashes) {
		return
	}
	t.n -= len(whole.hashes) - n
	t.extents[at].hashes = whole.hashes[:n:n]
	rest := t.add(whole.hashes[n:], true)
	t.extents[at].tail = rest
	s := &t.extents[rest]
	s.holders, s.tail = whole.holders, whole.tail
	if s.holders == 0 {
		s.prev, s.next = whole.prev, at
		t.extents[whole.prev].next, t.extents[at].prev = rest, rest
	}
}

// remove deletes an extent. Entries after its bucket move up if possible, because a
// lookup stops at an empty bucket.
func (t *blockTable) remove(at int32) {
	mask := len(t.buckets) - 1
	free := t.bucket(t.extents[at].hashes[0])
	for i := (free + 1) & mask; t.buckets[i] != 0; i = (i + 1) & mask {
		home := int(t.extents[t.buckets[i]].hashes[0]) & mask
		if (i-home)&mask >= (i-free)&mask {
			t.buckets[free] = t.buckets[i]
			free = i
		}
	}
	t.buckets[free] = 0
	t.unused = append(t.unused, at)
	t.used--
	if t.extents[at].inner {
		t.inner--
	}
	t.n -= len(t.extents[at].hashes)
	t.extents[at] = extent{}
}

// link appends an extent to the LRU list.
func (t *blockTable) link(at int32) {
	last := t.extents[0].prev
	t.extents[at].prev, t.extents[at].next = last, 0
	t.extents[last].next, t.extents[0].prev = at, at
}

// unlink removes an extent from the LRU list.
func (t *blockTable) unlink(at int32) {
	s := &t.extents[at]
	t.extents[s.prev].next, t.extents[s.next].prev = s.next, s.prev
}

// drop removes up to n blocks from the end of the least recently released extent.
func (t *blockTable) drop(n int) (hashes []uint64) {
	at := t.extents[0].next
	s := &t.extents[at]
	if n = len(s.hashes) - n; n <= 0 {
		hashes = s.hashes
		t.unlink(at)
		t.remove(at)
		return hashes
	}
	hashes, s.hashes = s.hashes[n:], s.hashes[:n:n]
	t.n -= len(hashes)
	return hashes
}
