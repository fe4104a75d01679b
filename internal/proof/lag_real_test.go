//go:build real

package proof

import (
	"fmt"
	"slices"
	"testing"
)

// On any machine, all requests reach the server, and none is sent before it is
// due. BenchmarkArrivals measures the lateness.
func TestRealSchedule(t *testing.T) {
	for _, l := range processes {
		l.Requests = 200
		t.Run(fmt.Sprint("burstiness=", l.Burstiness), func(t *testing.T) {
			seen := arrivals(t, l)
			if early := slices.Min(seen.Lag); early < 0 {
				t.Errorf("a request was sent %v us before it was due", -early)
			}
			checkSchedule(t, seen)
		})
	}
}
