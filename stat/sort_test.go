package stat_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tacho-bench/tacho/stat"
)

// SortBy gives the same order as a stable comparison sort.
func TestSortBy(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	type item struct {
		key   uint64
		place int
	}
	for _, most := range []uint64{1, 3, 1 << 11, 1<<11 + 1, 1 << 40, 1<<64 - 1} {
		for _, n := range []int{0, 1, 2, 1000, 1024, 5000} {
			var got []item
			for i := range n {
				got = append(got, item{rng.Uint64N(most), i})
			}
			want := slices.Clone(got)
			slices.SortStableFunc(want, func(a, b item) int { return cmp.Compare(a.key, b.key) })
			stat.SortBy(got, func(i item) uint64 { return i.key })
			if !slices.Equal(got, want) {
				t.Errorf("%d items with keys below %d are in another order", n, most)
			}
		}
	}
}
