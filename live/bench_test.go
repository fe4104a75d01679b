package live

import (
	"testing"
	"time"
)

// What watching costs for each token, and for each tick with its snapshot.
func BenchmarkToken(b *testing.B) {
	var f Feed
	b.RunParallel(func(pb *testing.PB) {
		for d := time.Duration(0); pb.Next(); d = (d + 7919) % (50 * time.Millisecond) {
			f.Token(1, false, d)
		}
	})
}

func BenchmarkTick(b *testing.B) {
	var f Feed
	var board Board
	board.Begin(Level{Number: 1})
	for i := range b.N {
		for k := range 25_000 { // half a second of 50,000 tokens/s
			f.Token(1, k%300 == 0, 20*time.Millisecond+time.Duration(k*7919%1_000_000))
		}
		b.StartTimer()
		board.Add(f.Tick(time.Duration(i+1) * Period))
		board.Snapshot()
		b.StopTimer()
	}
}
