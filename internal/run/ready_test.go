package run

import (
	"testing"
	"time"
)

// An open loop opens connections for eight times the duration of the test
// answer, or for one second without a test request.
func TestForesight(t *testing.T) {
	for took, want := range map[time.Duration]float64{0: 1, 10 * time.Millisecond: 0.08, 125 * time.Millisecond: 1, time.Minute: 1} {
		if got := (&Runner{setting: &setting{job: &job{}}, took: took}).foresight(); got != want {
			t.Errorf("an answer takes %v: %v s, want %v", took, got, want)
		}
	}
}
