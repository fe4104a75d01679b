package traceid

import (
	"fmt"
	"math"
	"regexp"
	"testing"
)

func TestOf(t *testing.T) {
	id := Of(7, "bench-1")
	if id != Of(7, "bench-1") || id == Of(8, "bench-1") || id == Of(7, "bench-2") {
		t.Error("the ID must depend on the run and the request, and on nothing else")
	}
	if p := id.Parent(); !regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`).MatchString(p) {
		t.Error(p)
	}
}

// The share of sampled requests is the fraction, within five standard deviations.
func TestSampled(t *testing.T) {
	const n = 20_000
	for _, fraction := range []float64{0, 0.01, 0.5, 1} {
		count := 0
		for i := range n {
			if Of(1, fmt.Sprint(i)).Sampled(fraction) {
				count++
			}
		}
		if off := math.Abs(float64(count) - n*fraction); off > 5*math.Sqrt(n*fraction*(1-fraction)) {
			t.Errorf("%d of %d requests are sampled with %g", count, n, fraction)
		}
	}
}
