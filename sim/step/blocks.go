package step

// A blockTable is the shared blocks. A fleet has millions of them, and each
// request takes and gives back dozens: so blocks that follow one another and share
// their fate are one stretch, which is found by the hash of its first.
type blockTable struct {
	n         int       // blocks that are in it
	stretches []stretch // the first is the end of the ring: its next is the one to go first
	unused    []int32   // places in stretches
	used      int       // stretches
	inner     int       // of these, those that do not begin where a prompt does
	places    []int32   // where a stretch is, at the first free place from the end of its hash on; 0: nowhere. At most half is taken
}

// A stretch is blocks that follow one another. All of them have the same holders;
// and where they have none they are let go from the last to the first.
type stretch struct {
	hashes     []uint64
	inner      bool // it does not begin where a prompt does
	holders    int32
	prev, next int32 // in the ring: of stretches that nobody holds, in the order in which they were let go
	rest       int32 // what was cut off it; for those who held it before that
}

func newBlockTable() blockTable {
	return blockTable{stretches: make([]stretch, 1), places: make([]int32, 64)}
}

// look is the place of a hash, or the free one where it belongs.
func (t *blockTable) look(hash uint64) int {
	mask := len(t.places) - 1
	i := int(hash) & mask
	for t.places[i] != 0 && t.stretches[t.places[i]].hashes[0] != hash {
		i = (i + 1) & mask
	}
	return i
}

// A spot is where a block is: which one of which stretch; the zero value is
// nowhere.
type spot struct{ stretch, block int32 }

// first is where the block of that hash is, if it is the first of a stretch.
func (t *blockTable) first(hash uint64) spot { return spot{t.places[t.look(hash)], 0} }

// after is where block i of a prompt is, if the one before it is at b. For a
// hash covers all before it: only there or at the beginning of a stretch can it be.
func (t *blockTable) after(b spot, hashes []uint64, i int) spot {
	if own := t.stretches[b.stretch].hashes; b.stretch != 0 && int(b.block)+1 < len(own) && own[b.block+1] == hashes[i] {
		return spot{b.stretch, b.block + 1}
	}
	if i > 0 && t.inner == 0 {
		return spot{}
	}
	return t.first(hashes[i])
}

// add makes a stretch of blocks that are not there.
func (t *blockTable) add(hashes []uint64, inner bool) int32 {
	if 2*t.used >= len(t.places) {
		t.grow()
	}
	at := int32(len(t.stretches))
	if last := len(t.unused) - 1; last >= 0 {
		at, t.unused = t.unused[last], t.unused[:last]
		t.stretches[at] = stretch{hashes: hashes, inner: inner}
	} else {
		t.stretches = append(t.stretches, stretch{hashes: hashes, inner: inner})
	}
	if inner {
		t.inner++
	}
	t.places[t.look(hashes[0])] = at
	t.used++
	t.n += len(hashes)
	return at
}

func (t *blockTable) grow() {
	old := t.places
	t.places = make([]int32, 2*len(old))
	for _, at := range old {
		if at != 0 {
			t.places[t.look(t.stretches[at].hashes[0])] = at
		}
	}
}

// cut leaves n blocks in a stretch. The others become one that is let go before
// it, or is held by all that hold it.
func (t *blockTable) cut(at int32, n int) {
	whole := t.stretches[at]
	if n == len(whole.hashes) {
		return
	}
	t.n -= len(whole.hashes) - n
	t.stretches[at].hashes = whole.hashes[:n:n]
	rest := t.add(whole.hashes[n:], true)
	t.stretches[at].rest = rest
	s := &t.stretches[rest]
	s.holders, s.rest = whole.holders, whole.rest
	if s.holders == 0 {
		s.prev, s.next = whole.prev, at
		t.stretches[whole.prev].next, t.stretches[at].prev = rest, rest
	}
}

// remove takes a stretch out. Those after it move up where they may, so that they
// are found without it.
func (t *blockTable) remove(at int32) {
	mask := len(t.places) - 1
	free := t.look(t.stretches[at].hashes[0])
	for i := (free + 1) & mask; t.places[i] != 0; i = (i + 1) & mask {
		home := int(t.stretches[t.places[i]].hashes[0]) & mask
		if (i-home)&mask >= (i-free)&mask {
			t.places[free] = t.places[i]
			free = i
		}
	}
	t.places[free] = 0
	t.unused = append(t.unused, at)
	t.used--
	if t.stretches[at].inner {
		t.inner--
	}
	t.n -= len(t.stretches[at].hashes)
	t.stretches[at] = stretch{}
}

// link puts a stretch at the end of the ring.
func (t *blockTable) link(at int32) {
	last := t.stretches[0].prev
	t.stretches[at].prev, t.stretches[at].next = last, 0
	t.stretches[last].next, t.stretches[0].prev = at, at
}

// unlink takes it out of the ring.
func (t *blockTable) unlink(at int32) {
	s := &t.stretches[at]
	t.stretches[s.prev].next, t.stretches[s.next].prev = s.next, s.prev
}

// drop removes the last blocks of the first stretch of the ring, n at most.
func (t *blockTable) drop(n int) (hashes []uint64) {
	at := t.stretches[0].next
	s := &t.stretches[at]
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
