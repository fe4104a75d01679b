package step

// A blockTable is the shared blocks, by their hash. A fleet has millions of them,
// and each request takes and gives back dozens: they hold no pointers, which the
// garbage collector would follow, and are found in one look at a small list.
type blockTable struct {
	n      int     // blocks that are in it
	blocks []block // the first is the end of the ring: its next is the one to go first
	unused []int32 // places in blocks
	places []int32 // where a block is, at the first free place from the end of its hash on; 0: nowhere. At most half is taken
}

type block struct {
	hash       uint64
	holders    int32
	prev, next int32 // in the ring: of blocks that nobody holds, in the order in which they were let go
}

func newBlockTable() blockTable {
	return blockTable{blocks: make([]block, 1), places: make([]int32, 64)}
}

// look is the place of a hash, or the free one where it belongs.
func (t *blockTable) look(hash uint64) int {
	mask := len(t.places) - 1
	i := int(hash) & mask
	for t.places[i] != 0 && t.blocks[t.places[i]].hash != hash {
		i = (i + 1) & mask
	}
	return i
}

// find is where the block of that hash is in blocks; 0: it is not there.
func (t *blockTable) find(hash uint64) int32 { return t.places[t.look(hash)] }

// add makes a block of that hash; 0: there is one.
func (t *blockTable) add(hash uint64) int32 {
	if 2*t.n >= len(t.places) {
		t.grow()
	}
	i := t.look(hash)
	if t.places[i] != 0 {
		return 0
	}
	at := int32(len(t.blocks))
	if last := len(t.unused) - 1; last >= 0 {
		at, t.unused = t.unused[last], t.unused[:last]
		t.blocks[at] = block{hash: hash}
	} else {
		t.blocks = append(t.blocks, block{hash: hash})
	}
	t.places[i] = at
	t.n++
	return at
}

func (t *blockTable) grow() {
	old := t.places
	t.places = make([]int32, 2*len(old))
	for _, at := range old {
		if at != 0 {
			t.places[t.look(t.blocks[at].hash)] = at
		}
	}
}

// remove takes a block out. Those after it move up where they may, so that they
// are found without it.
func (t *blockTable) remove(at int32) {
	mask := len(t.places) - 1
	free := t.look(t.blocks[at].hash)
	for i := (free + 1) & mask; t.places[i] != 0; i = (i + 1) & mask {
		home := int(t.blocks[t.places[i]].hash) & mask
		if (i-home)&mask >= (i-free)&mask {
			t.places[free] = t.places[i]
			free = i
		}
	}
	t.places[free] = 0
	t.unused = append(t.unused, at)
	t.n--
}

// link puts a block at the end of the ring.
func (t *blockTable) link(at int32) {
	last := t.blocks[0].prev
	t.blocks[at].prev, t.blocks[at].next = last, 0
	t.blocks[last].next, t.blocks[0].prev = at, at
}

// unlink takes it out of the ring.
func (t *blockTable) unlink(at int32) {
	b := t.blocks[at]
	t.blocks[b.prev].next, t.blocks[b.next].prev = b.next, b.prev
}

// drop removes the first block of the ring.
func (t *blockTable) drop() (hash uint64) {
	at := t.blocks[0].next
	hash = t.blocks[at].hash
	t.unlink(at)
	t.remove(at)
	return hash
}
