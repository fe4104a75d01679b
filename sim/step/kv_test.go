package step

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

// lruModel is a reference prefix cache: a list of hashes in order of eviction.
type lruModel struct {
	capacity int
	hashes   []uint64
}

// serve runs one request alone: it looks up the prefix, evicts blocks to make room
// and leaves its own blocks behind.
func (m *lruModel) serve(hashes []uint64, prompt, total, blockTokens int) (hitTokens int) {
	hits := 0
	for hits < min(len(hashes), (prompt-1)/blockTokens) && slices.Contains(m.hashes, hashes[hits]) {
		hits++
	}
	mine := hashes[:min(len(hashes), prompt/blockTokens)]
	for _, h := range mine[:hits] { // blocks in use cannot be evicted
		m.hashes = slices.DeleteFunc(m.hashes, func(x uint64) bool { return x == h })
	}
	// Evict the oldest blocks to make room for the rest of the request.
	need := (total + blockTokens - 1) / blockTokens
	for len(m.hashes)+need > m.capacity {
		m.hashes = m.hashes[1:]
	}
	// The request leaves its blocks; the last is evicted first. A block that was
	// already cached keeps its position.
	for _, h := range slices.Backward(mine) {
		if !slices.Contains(m.hashes, h) {
			m.hashes = append(m.hashes, h)
		}
	}
	return hits * blockTokens
}

func TestPrefixHitsOneByOne(t *testing.T) {
	hits := 0
	for trial := range uint64(100) {
		rng := rand.New(rand.NewPCG(trial, 3))
		p := plain([]string{"chunked", "prefill-first", "reserve"}[trial%3])
		p.StepTokens = 1000 // a prompt is one step, so its space is allocated together
		p.KV = KV{BlockTokens: 1 + rng.IntN(5), Blocks: 60 + rng.IntN(60), PrefixCache: true}
		model := lruModel{capacity: p.KV.Blocks}
		var arrivals []Arrival
		var want []int
		for i := range 60 {
			r := Request{ID: uint64(i), Prompt: 1 + rng.IntN(40), MaxNew: 1}
			family, fork := rng.Uint64N(4), rng.IntN(20)
			for b := range r.Prompt / p.KV.BlockTokens {
				h := family<<32 | uint64(b)
				if b >= fork { // prompts share a prefix and then diverge
					h |= uint64(fork+1) << 16
				}
				r.Blocks = append(r.Blocks, h)
			}
			total := r.Prompt
			if p.Policy == "reserve" {
				total += r.MaxNew
			}
			want = append(want, model.serve(r.Blocks, r.Prompt, total, p.KV.BlockTokens))
			arrivals = append(arrivals, Arrival{At: time.Duration(i) * time.Minute, Request: r})
		}
		traces, stats, err := Simulate(p, trial, arrivals)
		must.Do(t, err)
		sum := 0
		for i, trace := range traces {
			if trace.Cached != want[i] {
				t.Fatalf("trial %d, request %d: %d tokens cached, want %d", trial, i, trace.Cached, want[i])
			}
			sum += want[i]
		}
		if stats.PrefixHitTokens != int64(sum) {
			t.Fatalf("trial %d: %d hits counted, want %d", trial, stats.PrefixHitTokens, sum)
		}
		hits += sum
	}
	if hits == 0 {
		t.Error("no trial had a hit")
	}
}

// With unlimited memory, a request finds the blocks of all requests admitted before
// it, even if they run at the same time.
func TestPrefixHitsTogether(t *testing.T) {
	for trial := range uint64(50) {
		rng := rand.New(rand.NewPCG(trial, 4))
		p := plain("prefill-first") // whole prompts: an admitted prompt is computed
		p.KV = KV{BlockTokens: 4, PrefixCache: true}
		arrivals := randomArrivals(rng, p, 60)
		traces, stats, err := Simulate(p, trial, arrivals)
		must.Do(t, err)
		seen := map[uint64]bool{}
		var queries, hits int64
		for i, a := range arrivals { // admission is in order of arrival
			n := 0
			for n < min(len(a.Blocks), (a.Prompt-1)/4) && seen[a.Blocks[n]] {
				n++
			}
			for _, h := range a.Blocks {
				seen[h] = true
			}
			if traces[i].Cached != 4*n {
				t.Fatalf("trial %d, request %d: %d tokens cached, want %d", trial, i, traces[i].Cached, 4*n)
			}
			queries += int64(a.Prompt)
			hits += int64(4 * n)
		}
		if stats.PrefixQueryTokens != queries || stats.PrefixHitTokens != hits || hits == 0 {
			t.Fatalf("trial %d: %d of %d, want %d of %d", trial, stats.PrefixHitTokens, stats.PrefixQueryTokens, hits, queries)
		}
	}
}

func TestPrefixOfOutput(t *testing.T) {
	// The second turn of a conversation begins with the prompt and the answer of
	// the first.
	p := plain("chunked")
	p.KV.PrefixCache = true
	blocks := []uint64{1, 2, 3, 4}
	traces, _, err := Simulate(p, 1, []Arrival{
		{Request: Request{ID: 1, Prompt: 6, MaxNew: 7, IgnoreEOS: true, Blocks: blocks[:3]}},
		{At: time.Minute, Request: Request{ID: 2, Prompt: 17, MaxNew: 1, Blocks: blocks}},
	})
	must.Do(t, err)
	// 6 + 7 tokens, of which the last was never fed back: three full blocks of
	// four.
	if got := traces[1].Cached; got != 12 {
		t.Errorf("%d tokens cached, want 12", got)
	}
}

func TestPrefixCacheOffAndDropped(t *testing.T) {
	run := func(on, drop bool) int {
		p := plain("chunked")
		p.KV.PrefixCache = on
		e := must.Get(New(p, 1))(t)
		cached := 0
		for id := range uint64(2) {
			must.Do(t, e.Add(0, &Request{ID: id, Prompt: 9, MaxNew: 1, Blocks: []uint64{1, 2}}))
			e.Next(0)
			e.Finish(func(m Emission) { cached = m.Cached })
			if drop {
				e.DropPrefixes()
			}
		}
		return cached
	}
	for _, tc := range []struct {
		on, drop bool
		want     int
	}{{true, false, 8}, {true, true, 0}, {false, false, 0}} {
		if got := run(tc.on, tc.drop); got != tc.want {
			t.Errorf("cache %v, dropped %v: %d tokens cached, want %d", tc.on, tc.drop, got, tc.want)
		}
	}
}
