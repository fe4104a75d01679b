package live

import (
	"testing"
	"time"
)

// What watching costs for each token; BenchmarkSecond of live/view has all of it.
func BenchmarkToken(b *testing.B) {
	var f Feed
	b.RunParallel(func(pb *testing.PB) {
		for d := time.Duration(0); pb.Next(); d = (d + 7919) % (50 * time.Millisecond) {
			f.Token(1, false, d)
		}
	})
}
