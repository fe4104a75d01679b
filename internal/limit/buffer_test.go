package limit

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A Buffer returns the bytes added to it, for any number and any size of pieces.
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
			t.Fatalf("Take returned %d of %d bytes and left %d", len(got), len(want), b.Len())
		}
	}
}

// A Buffer allocates nothing for the short lines of an ordinary stream.
func TestBufferDoesNotAllocate(t *testing.T) {
	var b Buffer
	piece := make([]byte, 300)
	if n := testing.AllocsPerRun(100, func() { b.Add(piece); b.Take() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
