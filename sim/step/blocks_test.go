package step

import (
	"math/rand/v2"
	"testing"
)

// A table is a map, whatever is put in and taken out, also where hashes have the
// same end.
func TestBlockTableIsAMap(t *testing.T) {
	for trial := range uint64(50) {
		rng := rand.New(rand.NewPCG(trial, 9))
		table, want := newBlockTable(), map[uint64]int32{}
		for range 2000 {
			hash := rng.Uint64N(300) << (trial % 4 * 20) // the higher, the more alike are their ends
			at, there := want[hash]
			switch {
			case table.find(hash) != at:
				t.Fatalf("trial %d: %x is at %d, want %d", trial, hash, table.find(hash), at)
			case there && rng.IntN(2) == 0:
				table.remove(at)
				delete(want, hash)
			default:
				got := table.add(hash)
				if there != (got == 0) {
					t.Fatalf("trial %d: %x was added at %d, and was there: %v", trial, hash, got, there)
				}
				if !there {
					want[hash] = got
				}
			}
			if table.n != len(want) {
				t.Fatalf("trial %d: %d blocks, want %d", trial, table.n, len(want))
			}
		}
	}
}
