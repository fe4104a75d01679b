package metric

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
)

// A run of ten hours has wider bins than one of an hour. Its peaks stay near the exact peaks, and
// merging its parts in any order gives the whole.
func TestArrivalsOfALongRun(t *testing.T) {
	const limit = 1000
	rng := rand.New(rand.NewPCG(1, 2))
	var exact, whole arrivals
	parts := make([]arrivals, 3)
	for range 500 {
		r := tacho.Record{Timeline: tacho.NewTimeline(0), Output: 1500}
		r.Sent = 0
		at := time.Duration(rng.Int64N(int64(10 * time.Hour)))
		for range 1000 {
			at += time.Duration(rng.Int64N(int64(time.Millisecond)))
			r.Events = append(r.Events, tacho.Event{At: at})
		}
		exact.add(&r, 1<<30)
		whole.add(&r, limit)
		parts[rng.IntN(len(parts))].add(&r, limit)
	}
	if whole.shift == 0 || len(whole.bins) > maxBins {
		t.Errorf("%d bins of %v", len(whole.bins), whole.begin(1))
	}
	sum := arrivals{}
	for _, i := range []int{2, 0, 1} {
		sum.merge(&parts[i], limit)
	}
	want, got := exact.peaks(0), whole.peaks(0)
	if sum.peaks(0) != got {
		t.Errorf("the parts come to %+v, the whole to %+v", sum.peaks(0), got)
	}
	off := 2 * whole.begin(1).Seconds() // one bin at each end of the second
	if math.Abs(got.TokensPerS/want.TokensPerS-1) > off || math.Abs(float64(got.EventsPerS)/float64(want.EventsPerS)-1) > off {
		t.Errorf("got %+v, want within %.1f %% of %+v", got, 100*off, want)
	}
}
