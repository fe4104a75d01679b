package run

import (
	"runtime/metrics"
	"testing"
)

func TestQuantileSince(t *testing.T) {
	buckets := []float64{0, 0.001, 0.01, 0.1, 1}
	before := &metrics.Float64Histogram{Counts: []uint64{50, 5, 0, 7}, Buckets: buckets}
	after := &metrics.Float64Histogram{Counts: []uint64{140, 14, 1, 7}, Buckets: buckets}
	// 100 new values: 90, 9, 1 and 0 per bucket.
	for q, want := range map[float64]float64{0.5: 0, 0.9: 0, 0.95: 0.001, 0.99: 0.001, 1: 0.01} {
		if got := quantileSince(before, after, q); got != want {
			t.Errorf("q %v: %v, want %v", q, got, want)
		}
	}
	if got := quantileSince(after, after, 0.99); got != 0 {
		t.Errorf("nothing new: %v", got)
	}
}

func TestHealthCountsProcessorTime(t *testing.T) {
	h := newHealth()
	x := 1.0
	for processSeconds() == h.cpu { // use CPU until the process clock advances
		x *= 1.0000001
	}
	if processSeconds() <= h.cpu || x == 0 {
		t.Error("processor time does not pass")
	}
	if c := h.end(); c.BusyShare <= 0 {
		t.Errorf("a client that used a processor: %+v", c)
	}
}
