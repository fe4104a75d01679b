package engine

import "testing"

// Threads that receive and send keep their turns while they wait: those that are left
// must be enough for all cores.
func TestTurns(t *testing.T) {
	for cores := 1; cores <= 512; cores++ {
		if waiting := max(1, cores/2) + 1; turns(cores)-waiting < cores {
			t.Errorf("%d turns on %d cores, of which %d may be kept", turns(cores), cores, waiting)
		}
	}
}
