package engine

import "testing"

// The thread that sends keeps its turn while it waits: those that are left must be
// enough for all cores, and for the garbage collector, which takes a quarter of all.
func TestTurns(t *testing.T) {
	for cores := 1; cores <= 512; cores++ {
		if left := turns(cores) - 1 - turns(cores)/4; left < cores {
			t.Errorf("%d turns on %d cores, of which %d are left", turns(cores), cores, left)
		}
	}
}
