package step

import (
	"math"
	"slices"
)

// A kvCache hands out KV blocks. A block is private to a sequence, or shared under
// the hash of all tokens up to its end. An idle block is a shared block without
// holders; idle blocks are evicted in the order of their release, when space is
// needed.
type kvCache struct {
	blockTokens int
	total       int // blocks; math.MaxInt if unlimited
	reserve     int // blocks kept free at admission
	prefixes    bool

	private int // blocks held by one sequence
	shared  blockTable
	idle    int // shared blocks without holders
	tier    tier
}

// A holding is the blocks of one sequence.
type holding struct {
	private int
	shared  []piece
	common  int // blocks in shared
	hashed  int // leading blocks already shared or offered for sharing
}

// A piece is the first n blocks of an extent and of the extents split off from it
// since.
type piece struct {
	extent, n int32
	to        int // number of the sequence's blocks up to the end of the piece
}

func (h *holding) blocks() int { return h.private + h.common }

// hold adds a piece of n blocks up to block to.
func (h *holding) hold(at int32, n, to int) {
	h.shared = append(h.shared, piece{at, int32(n), to})
	h.common += n
}

func newKVCache(c KV, o Offload) kvCache {
	k := kvCache{blockTokens: c.BlockTokens, total: c.Blocks, prefixes: c.PrefixCache, shared: newBlockTable()}
	k.tier = tier{total: o.Blocks, cached: newBlockTable()}
	if c.Blocks == 0 {
		k.total = math.MaxInt
	}
	k.reserve = int(c.Watermark * float64(c.Blocks))
	return k
}

func (k *kvCache) blocksFor(tokens int) int {
	return (tokens + k.blockTokens - 1) / k.blockTokens
}

// used counts the blocks held by sequences.
func (k *kvCache) used() int { return k.private + k.shared.n - k.idle }

// match counts the leading blocks of hashes in the cache, among those wholly before
// the last of tokens, because a model must compute at least one token to generate
// the next. away counts the blocks after them in the offload memory.
func (k *kvCache) match(hashes []uint64, tokens int) (blocks, idle, away int) {
	if !k.prefixes {
		return 0, 0, 0
	}
	hashes = hashes[:min(len(hashes), (tokens-1)/k.blockTokens)]
	var at blockRef
	for i := range hashes {
		if at = k.shared.after(at, hashes, i); at.extent == 0 {
			break
		}
		blocks++
		if k.shared.extents[at.extent].holders == 0 {
			idle++
		}
	}
	for k.tier.total > 0 && blocks+away < len(hashes) && k.tier.cached.first(hashes[blocks+away]).extent != 0 {
		away++
	}
	return blocks, idle, away
}

// admit gives an empty holding the cached blocks of its prefix and space for the
// remaining tokens, and keeps spare blocks free. If there is no space, admit
// changes nothing.
func (k *kvCache) admit(h *holding, hashes []uint64, hits, idleHits, tokens, spare int) bool {
	need := k.blocksFor(tokens) - hits
	if need > k.total-k.used()-idleHits-spare {
		return false
	}
	for h.hashed < hits {
		at := k.shared.first(hashes[h.hashed]).extent
		k.shared.cut(at, commonPrefix(k.shared.extents[at].hashes, hashes[h.hashed:hits]))
		s := &k.shared.extents[at]
		if s.holders == 0 {
			k.shared.unlink(at)
			k.idle -= len(s.hashes)
		}
		s.holders++
		h.hashed += len(s.hashes)
		h.hold(at, len(s.hashes), h.hashed)
	}
	k.take(h, need)
	return true
}

// commonPrefix returns the number of equal leading elements of a and b.
func commonPrefix(a, b []uint64) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// grow extends h to hold tokens. If there is no space, it returns false and changes
// nothing.
func (k *kvCache) grow(h *holding, tokens int) bool {
	need := k.blocksFor(tokens) - h.blocks()
	if need <= 0 {
		return true
	}
	if need > k.total-k.used() {
		return false
	}
	k.take(h, need)
	return true
}

// claim reserves n blocks for holdings that are updated later. If there is no
// space, it returns false.
func (k *kvCache) claim(n int) bool {
	if n > k.total-k.used() {
		return false
	}
	var whose holding
	k.take(&whose, n)
	return true
}

// take gives h n private blocks, which the caller knows to be free or idle.
func (k *kvCache) take(h *holding, n int) {
	k.evict(n - (k.total - k.private - k.shared.n))
	h.private += n
	k.private += n
}

// share offers the blocks of h that are full once tokens are computed. A step
// writes its keys and values before it reads any, so blocks can be shared when the
// step that fills them is planned.
func (k *kvCache) share(h *holding, hashes []uint64, tokens int) {
	if !k.prefixes {
		return
	}
	full := min(len(hashes), tokens/k.blockTokens)
	if full <= h.hashed {
		return
	}
	at := k.before(h, hashes)
	first := h.hashed // first block not in the cache
	for ; h.hashed < full; h.hashed++ {
		if at = k.shared.after(at, hashes, h.hashed); at.extent != 0 { // another sequence was first: this one keeps its copy
			k.publish(h, hashes, first, h.hashed)
			first = h.hashed + 1
		}
	}
	k.publish(h, hashes, first, full)
}

// before returns the position of the block before the first block that h has not
// offered yet.
func (k *kvCache) before(h *holding, hashes []uint64) (at blockRef) {
	if last := len(h.shared) - 1; h.hashed == 0 || last >= 0 && h.shared[last].to == h.hashed {
		return at // there is none, or it is the last of its extent
	}
	for i := range h.hashed {
		at = k.shared.after(at, hashes, i)
	}
	return at
}

// publish adds blocks of h to the cache.
func (k *kvCache) publish(h *holding, hashes []uint64, from, to int) {
	if from == to {
		return
	}
	h.private -= to - from
	k.private -= to - from
	if last := len(h.shared) - 1; last >= 0 && h.shared[last].to == from {
		p := &h.shared[last]
		s, begin := &k.shared.extents[p.extent], from-int(p.n)
		if s.holders == 1 && len(s.hashes) == int(p.n) && &s.hashes[0] == &hashes[begin] { // the extent belongs to h alone: extend it
			s.hashes = hashes[begin:to:to]
			p.n, p.to = int32(to-begin), to
			h.common += to - from
			k.shared.n += to - from
			return
		}
	}
	at := k.shared.add(hashes[from:to:to], from > 0)
	k.shared.extents[at].holders = 1
	h.hold(at, to-from, to)
}

// release gives back all blocks of h. The end of a sequence is the least likely
// part to be reused, so it is evicted first.
func (k *kvCache) release(h *holding) {
	k.private -= h.private
	for _, p := range slices.Backward(h.shared) {
		k.releaseBlocks(p.extent, int(p.n))
	}
	*h = holding{}
}

// releaseBlocks gives back n blocks of an extent and of the extents split off from
// it.
func (k *kvCache) releaseBlocks(at int32, n int) {
	s := &k.shared.extents[at]
	if n > len(s.hashes) {
		k.releaseBlocks(s.tail, n-len(s.hashes))
	}
	if s.holders--; s.holders == 0 {
		k.shared.link(at)
		k.idle += len(s.hashes)
	}
}

func (k *kvCache) dropIdle() { k.evict(k.idle) }

// evict frees up to n idle blocks.
func (k *kvCache) evict(n int) {
	for n > 0 && k.idle > 0 {
		gone := k.shared.drop(n)
		n -= len(gone)
		k.idle -= len(gone)
		k.tier.put(gone)
	}
}
