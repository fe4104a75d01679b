package step

import "slices"

// Offload is a second memory for keys and values, larger and slower than the
// first. What a preempted sequence had goes there and comes back, where it would
// be computed again else; and so does what the prefix cache has no more room for.
// A step in which something comes back, or is put there for a preempted sequence,
// takes as long as that longer. What the cache lets go was written before, beside
// the work.
type Offload struct {
	Blocks int     `yaml:"blocks"`   // there are; 0: there is no such memory
	GBPerS float64 `yaml:"gb_per_s"` // either way
}

// A tier is that memory.
type tier struct {
	total   int
	swapped int        // blocks of preempted sequences
	cached  blockTable // of the prefix cache, in the order in which they came
}

// swapOut takes in the blocks of a sequence; or it does not.
func (t *tier) swapOut(blocks int) bool {
	if t.swapped+blocks > t.total {
		return false
	}
	t.swapped += blocks
	t.shrink()
	return true
}

// put takes in blocks that the cache lets go, the last of them first.
func (t *tier) put(hashes []uint64) {
	if t.total == 0 {
		return
	}
	for i := range slices.Backward(hashes) {
		at := t.cached.first(hashes[i]).stretch
		if at != 0 {
			t.cached.unlink(at)
		} else {
			at = t.cached.add(hashes[i:i+1:i+1], true)
		}
		t.cached.link(at)
		t.shrink()
	}
}

// shrink lets go what came longest ago, until the rest fits.
func (t *tier) shrink() {
	for t.cached.n > 0 && t.swapped+t.cached.n > t.total {
		t.cached.drop(1)
	}
}
