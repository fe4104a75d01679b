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
	shared  []piece
	common  int // blocks in shared
	hashed  int // of its blocks, those that have been offered for sharing or were taken from it
}

// A piece is the first n blocks of a stretch, and of what was cut off it since.
type piece struct {
	stretch, n int32
	to         int // the blocks of the sequence up to and with it
}

func (h *holding) blocks() int { return h.private + h.common }

// hold adds a piece, of blocks that end at to.
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
	var at spot
	for i := range hashes {
		if at = k.shared.after(at, hashes, i); at.stretch == 0 {
			break
		}
		blocks++
		if k.shared.stretches[at.stretch].holders == 0 {
			idle++
		}
	}
	for k.tier.total > 0 && blocks+away < len(hashes) && k.tier.cached.first(hashes[blocks+away]).stretch != 0 {
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
	for h.hashed < hits {
		at := k.shared.first(hashes[h.hashed]).stretch
		k.shared.cut(at, equalStart(k.shared.stretches[at].hashes, hashes[h.hashed:hits]))
		s := &k.shared.stretches[at]
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

// equalStart is with how many equal ones two lists begin.
func equalStart(a, b []uint64) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
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
	k.evict(n - (k.total - k.private - k.shared.n))
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
	if full <= h.hashed {
		return
	}
	at := k.before(h, hashes)
	first := h.hashed // of those that are not there
	for ; h.hashed < full; h.hashed++ {
		if at = k.shared.after(at, hashes, h.hashed); at.stretch != 0 { // another sequence was first: this one keeps its copy
			k.lend(h, hashes, first, h.hashed)
			first = h.hashed + 1
		}
	}
	k.lend(h, hashes, first, full)
}

// before is where the block is that comes before those that h has not offered yet.
func (k *kvCache) before(h *holding, hashes []uint64) (at spot) {
	if last := len(h.shared) - 1; h.hashed == 0 || last >= 0 && h.shared[last].to == h.hashed {
		return at // there is none, or it is the last of its stretch
	}
	for i := range h.hashed {
		at = k.shared.after(at, hashes, i)
	}
	return at
}

// lend shares blocks of h that are not shared by anybody.
func (k *kvCache) lend(h *holding, hashes []uint64, from, to int) {
	if from == to {
		return
	}
	h.private -= to - from
	k.private -= to - from
	if last := len(h.shared) - 1; last >= 0 && h.shared[last].to == from {
		p := &h.shared[last]
		s, begin := &k.shared.stretches[p.stretch], from-int(p.n)
		if s.holders == 1 && len(s.hashes) == int(p.n) && &s.hashes[0] == &hashes[begin] { // it is a stretch of ours alone: it grows
			s.hashes = hashes[begin:to:to]
			p.n, p.to = int32(to-begin), to
			h.common += to - from
			k.shared.n += to - from
			return
		}
	}
	at := k.shared.add(hashes[from:to:to], from > 0)
	k.shared.stretches[at].holders = 1
	h.hold(at, to-from, to)
}

// release gives back all of h. The end of a sequence is the least likely part
// of it to be of use to another, so it is the first to go.
func (k *kvCache) release(h *holding) {
	k.private -= h.private
	for _, p := range slices.Backward(h.shared) {
		k.letGo(p.stretch, int(p.n))
	}
	*h = holding{}
}

// letGo gives back n blocks, of a stretch and of what was cut off it.
func (k *kvCache) letGo(at int32, n int) {
	s := &k.shared.stretches[at]
	if n > len(s.hashes) {
		k.letGo(s.rest, n-len(s.hashes))
	}
	if s.holders--; s.holders == 0 {
		k.shared.link(at)
		k.idle += len(s.hashes)
	}
}

func (k *kvCache) dropIdle() { k.evict(k.idle) }

// evict makes room for n blocks, as far as nobody holds others.
func (k *kvCache) evict(n int) {
	for n > 0 && k.idle > 0 {
		gone := k.shared.drop(n)
		n -= len(gone)
		k.idle -= len(gone)
		k.tier.put(gone)
	}
}
