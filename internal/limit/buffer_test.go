package limit

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// What comes out is what went in, however it was cut and however much there was.
func TestBuffer(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var b Buffer
	for range 50 {
		var want []byte
		size := []int{10, 5000, blockSize, 3 * blockSize}[r.IntN(4)]
		for range r.IntN(8) {
			piece := make([]byte, r.IntN(size))
			for i := range piece {
				piece[i] = byte(r.Uint32())
			}
			b.Add(piece)
			want = append(want, piece...)
			if b.Len() != len(want) {
				t.Fatalf("%d bytes held, want %d", b.Len(), len(want))
			}
		}
		if got := b.Take(); !bytes.Equal(got, want) || b.Len() != 0 {
			t.Fatalf("%d bytes came out of %d, and %d stayed", len(got), len(want), b.Len())
		}
	}
}

// The bytes of a usual stream go through without a new one.
func TestBufferIsUsedAgain(t *testing.T) {
	var b Buffer
	piece := make([]byte, 300)
	if n := testing.AllocsPerRun(100, func() { b.Add(piece); b.Take() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
