package engine

import "testing"

// The sending thread keeps its P while waiting. The other Ps must be enough for all
// cores, and for the garbage collector, which takes a quarter of all.
func TestProcs(t *testing.T) {
	for cores := 1; cores <= 512; cores++ {
		if left := procs(cores) - 1 - procs(cores)/4; left < cores {
			t.Errorf("%d Ps on %d cores, of which %d are left", procs(cores), cores, left)
		}
	}
}
