package workload

import (
	"slices"
	"testing"
)

// TestIDsAreDrawnAlike checks that append draws the same ids as draw.
func TestIDsAreDrawnAlike(t *testing.T) {
	for _, size := range []int{1, 2, 3, 1000, 1 << 10, 32000, 1 << 30} {
		v := idRange{first: 7, count: size}
		got := v.append([]int32{1}, streamOf(3, 4), 500)
		want, rng := []int32{1}, rngOf(3, 4)
		for range 500 {
			want = append(want, v.draw(rng))
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %d ids others were drawn", size)
		}
	}
}
