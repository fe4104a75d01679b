package live

import (
	"testing"
	"time"
)

// BenchmarkToken measures the cost of live metrics per token. BenchmarkSecond of
// live/view measures the total cost.
func BenchmarkToken(b *testing.B) {
	var f Feed
	b.RunParallel(func(pb *testing.PB) {
		for d := time.Duration(0); pb.Next(); d = (d + 7919) % (50 * time.Millisecond) {
			f.Token(1, false, d)
		}
	})
}
