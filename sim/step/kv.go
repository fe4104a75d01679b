package step

import (
	"math"
	"slices"
)

// A kvCache hands out KV blocks. A block is private to a sequence, or shared
// under the hash of all the tokens up to its end. A shared block that nobody
// holds stays until its room is needed; the one that was let go longest ago
// goes first.
type kvCache struct {
	blockTokens int
	total       int // blocks; math.MaxInt if unlimited
	reserve     int // blocks kept free when a sequence is let in
	prefixes    bool

	private int // blocks held by one sequence
	shared  blockTable
	idle    int // shared blocks that nobody holds
	tier    tier
}

// A holding is the blocks of one sequence.
type holding struct {
	private int
	shared  []int32
	hashed  int // of its blocks, those that have been offered for sharing or were taken from it
}

func (h *holding) blocks() int { return h.private + len(h.shared) }

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

// used counts the blocks that sequences hold.
func (k *kvCache) used() int { return k.private + k.shared.n - k.idle }

// match counts the leading blocks of hashes that are there, among those that
// lie wholly before the last of tokens: a model must compute at least one
// token to say anything. away are those that follow and are in the other memory.
func (k *kvCache) match(hashes []uint64, tokens int) (blocks, idle, away int) {
	if !k.prefixes {
		return 0, 0, 0
	}
	hashes = hashes[:min(len(hashes), (tokens-1)/k.blockTokens)]
	for _, hash := range hashes {
		at := k.shared.find(hash)
		if at == 0 {
			break
		}
		blocks++
		if k.shared.blocks[at].holders == 0 {
			idle++
		}
	}
	for k.tier.total > 0 && blocks+away < len(hashes) && k.tier.cached.find(hashes[blocks+away]) != 0 {
		away++
	}
	return blocks, idle, away
}

// admit gives an empty holding the blocks of its prefix that are there and
// room for the rest of tokens, keeping spare blocks free; or nothing.
func (k *kvCache) admit(h *holding, hashes []uint64, hits, idleHits, tokens, spare int) bool {
	need := k.blocksFor(tokens) - hits
	if need > k.total-k.used()-idleHits-spare {
		return false
	}
	for _, hash := range hashes[:hits] {
		at := k.shared.find(hash)
		b := &k.shared.blocks[at]
		if b.holders == 0 {
			k.shared.unlink(at)
			k.idle--
		}
		b.holders++
		h.shared = append(h.shared, at)
	}
	h.hashed = hits
	k.take(h, need)
	return true
}

// grow makes room in h for tokens; it says no and changes nothing if there is
// none.
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

// claim takes n blocks for holdings that learn of it later; or none.
func (k *kvCache) claim(n int) bool {
	if n > k.total-k.used() {
		return false
	}
	var whose holding
	k.take(&whose, n)
	return true
}

// take gives h n private blocks that are known to be free or idle.
func (k *kvCache) take(h *holding, n int) {
	for k.idle > 0 && n > k.total-k.private-k.shared.n {
		k.evict()
	}
	h.private += n
	k.private += n
}

// share offers the blocks of h that are full once tokens are computed. A step
// writes its keys and values before it reads any, so blocks can be shared as
// soon as the step that fills them is planned.
func (k *kvCache) share(h *holding, hashes []uint64, tokens int) {
	if !k.prefixes {
		return
	}
	full := min(len(hashes), tokens/k.blockTokens)
	if h.shared == nil && full > h.hashed {
		h.shared = make([]int32, 0, len(hashes))
	}
	for ; h.hashed < full; h.hashed++ {
		hash := hashes[h.hashed]
		at := k.shared.add(hash)
		if at == 0 { // another sequence was first: this one keeps its copy
			continue
		}
		k.shared.blocks[at].holders = 1
		h.shared = append(h.shared, at)
		h.private--
		k.private--
	}
}

// release gives back all of h. The end of a sequence is the least likely part
// of it to be of use to another, so it is the first to go.
func (k *kvCache) release(h *holding) {
	k.private -= h.private
	for _, at := range slices.Backward(h.shared) {
		b := &k.shared.blocks[at]
		if b.holders--; b.holders == 0 {
			k.shared.link(at)
			k.idle++
		}
	}
	*h = holding{}
}

func (k *kvCache) dropIdle() {
	for k.idle > 0 {
		k.evict()
	}
}

func (k *kvCache) evict() {
	k.idle--
	k.tier.put(k.shared.drop())
}
