package step

import "slices"

// Offload is a second memory for keys and values, larger and slower than the first.
// It holds the blocks of preempted sequences, which would otherwise be recomputed,
// and blocks evicted from the prefix cache. Blocks that return, and blocks of a
// preempted sequence, make the step longer by their transfer time. Evicted blocks
// cost nothing, because they were written earlier in the background.
type Offload struct {
	Blocks int     `yaml:"blocks"`   // size; 0: no offload memory
	GBPerS float64 `yaml:"gb_per_s"` // in both directions
}

// A tier is the offload memory.
type tier struct {
	total   int
	swapped int        // blocks of preempted sequences
	cached  blockTable // of the prefix cache, in order of arrival
}

// swapOut stores the blocks of a preempted sequence. It returns false if there is
// no space.
func (t *tier) swapOut(blocks int) bool {
	if t.swapped+blocks > t.total {
		return false
	}
	t.swapped += blocks
	t.shrink()
	return true
}

// put stores blocks evicted from the prefix cache, the last block first.
func (t *tier) put(hashes []uint64) {
	if t.total == 0 {
		return
	}
	for i := range slices.Backward(hashes) {
		at := t.cached.first(hashes[i]).extent
		if at != 0 {
			t.cached.unlink(at)
		} else {
			at = t.cached.add(hashes[i:i+1:i+1], true)
		}
		t.cached.link(at)
		t.shrink()
	}
}

// shrink removes the oldest cached blocks until the rest fits.
func (t *tier) shrink() {
	for t.cached.n > 0 && t.swapped+t.cached.n > t.total {
		t.cached.drop(1)
	}
}
