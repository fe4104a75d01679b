package step

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// plainCache is a reference kvCache that handles every block separately.
type plainCache struct {
	kvCache // for its counters
	blocks  map[uint64]int
	ring    []uint64 // blocks without holders, in order of eviction
	away    []uint64
}

type plainHolding struct {
	private, hashed int
	shared          []uint64
}

func (k *plainCache) match(hashes []uint64, tokens int) (blocks, idle, away int) {
	hashes = hashes[:min(len(hashes), (tokens-1)/k.blockTokens)]
	for _, hash := range hashes {
		holders, there := k.blocks[hash]
		if !there {
			break
		}
		if blocks++; holders == 0 {
			idle++
		}
	}
	for blocks+away < len(hashes) && slices.Contains(k.away, hashes[blocks+away]) {
		away++
	}
	return blocks, idle, away
}

func (k *plainCache) used() int { return k.private + len(k.blocks) - len(k.ring) }

func (k *plainCache) admit(h *plainHolding, hashes []uint64, hits, idle, tokens int) bool {
	need := k.blocksFor(tokens) - hits
	if need > k.total-k.used()-idle {
		return false
	}
	for _, hash := range hashes[:hits] {
		k.blocks[hash]++
		k.ring = slices.DeleteFunc(k.ring, func(x uint64) bool { return x == hash })
		h.shared = append(h.shared, hash)
	}
	h.hashed = hits
	k.take(h, need)
	return true
}

func (k *plainCache) take(h *plainHolding, n int) {
	for len(k.ring) > 0 && n > k.total-k.private-len(k.blocks) {
		hash := k.ring[0]
		k.ring = k.ring[1:]
		delete(k.blocks, hash)
		if k.tier.total > 0 {
			k.away = append(slices.DeleteFunc(k.away, func(x uint64) bool { return x == hash }), hash)
			k.away = k.away[max(len(k.away)-k.tier.total, 0):]
		}
	}
	h.private += n
	k.private += n
}

func (k *plainCache) share(h *plainHolding, hashes []uint64, tokens int) {
	for full := min(len(hashes), tokens/k.blockTokens); h.hashed < full; h.hashed++ {
		if _, there := k.blocks[hashes[h.hashed]]; there {
			continue
		}
		k.blocks[hashes[h.hashed]] = 1
		h.shared = append(h.shared, hashes[h.hashed])
		h.private--
		k.private--
	}
}

func (k *plainCache) release(h *plainHolding) {
	k.private -= h.private
	for _, hash := range slices.Backward(h.shared) {
		if k.blocks[hash]--; k.blocks[hash] == 0 {
			k.ring = append(k.ring, hash)
		}
	}
}

// order returns the blocks of the LRU list in order of eviction.
func (t *blockTable) order() (out []uint64) {
	for at := t.extents[0].next; at != 0; at = t.extents[at].next {
		for _, hash := range slices.Backward(t.extents[at].hashes) {
			out = append(out, hash)
		}
	}
	return out
}

// Sequences with common prefixes arrive, grow and end. The cache must agree with
// plainCache.
func TestBlocksInExtents(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		made := newKVCache(KV{BlockTokens: 4, Blocks: 30 + rng.IntN(60), PrefixCache: true}, Offload{Blocks: rng.IntN(2) * 20})
		k, want := &made, &plainCache{kvCache: made, blocks: map[uint64]int{}}
		type sequence struct {
			hashes []uint64
			tokens int
			is     holding
			plain  plainHolding
		}
		var running []*sequence
		for range 400 {
			if len(running) > 0 && rng.IntN(2) == 0 {
				i := rng.IntN(len(running))
				s := running[i]
				if rng.IntN(3) == 0 {
					k.release(&s.is)
					want.release(&s.plain)
					running = slices.Delete(running, i, i+1)
				} else {
					s.tokens = min(s.tokens+rng.IntN(20), 4*s.is.blocks())
					k.share(&s.is, s.hashes, s.tokens)
					want.share(&s.plain, s.hashes, s.tokens)
				}
			} else {
				s := &sequence{hashes: branch(rng)}
				tokens := 4*len(s.hashes) + 1 + rng.IntN(4)
				blocks, idle, away := k.match(s.hashes, tokens)
				if b, i, a := want.match(s.hashes, tokens); b != blocks || i != idle || a != away {
					t.Fatalf("seed %d: %d blocks are there, %d idle, %d away, want %d, %d, %d", seed, blocks, idle, away, b, i, a)
				}
				ok := k.admit(&s.is, s.hashes, blocks, idle, tokens, 0)
				if ok != want.admit(&s.plain, s.hashes, blocks, idle, tokens) {
					t.Fatalf("seed %d: admitted: %v", seed, ok)
				}
				if s.tokens = blocks * 4; ok {
					running = append(running, s)
				}
			}
			for _, s := range running {
				if s.is.private != s.plain.private || s.is.common != len(s.plain.shared) || s.is.hashed != s.plain.hashed {
					t.Fatalf("seed %d: a sequence holds %d and %d blocks, want %d and %d", seed, s.is.private, s.is.common, s.plain.private, len(s.plain.shared))
				}
			}
			if k.private != want.private || k.shared.n != len(want.blocks) || !slices.Equal(k.shared.order(), want.ring) || !slices.Equal(k.tier.cached.order(), want.away) {
				t.Fatalf("seed %d: %d private and %d shared blocks, idle %x, away %x; want %d, %d, %x, %x", seed,
					k.private, k.shared.n, k.shared.order(), k.tier.cached.order(), want.private, len(want.blocks), want.ring, want.away)
			}
		}
	}
}

// branch returns the hashes of a prompt that shares a prefix with others.
func branch(rng *rand.Rand) (out []uint64) {
	at := uint64(1)
	for range 1 + rng.IntN(12) {
		at = (at*31 + uint64(rng.IntN(8)/7)) * 0x9e3779b97f4a7c15
		out = append(out, at)
	}
	return out
}

// A block table behaves like a map under insertions and deletions, even if hashes
// collide.
func TestBlockTableIsAMap(t *testing.T) {
	for trial := range uint64(50) {
		rng := rand.New(rand.NewPCG(trial, 9))
		table, want := newBlockTable(), map[uint64]int32{}
		for range 2000 {
			hash := rng.Uint64N(300) << (trial % 4 * 20) // larger shifts cause more collisions
			at, there := want[hash]
			if got := table.first(hash).extent; got != at {
				t.Fatalf("trial %d: %x is at %d, want %d", trial, hash, got, at)
			}
			switch {
			case !there:
				want[hash] = table.add([]uint64{hash}, false)
			case rng.IntN(2) == 0:
				table.remove(at)
				delete(want, hash)
			}
			if table.n != len(want) {
				t.Fatalf("trial %d: %d blocks, want %d", trial, table.n, len(want))
			}
		}
	}
}
