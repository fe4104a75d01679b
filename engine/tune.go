package engine

import (
	"runtime"
	"runtime/debug"
)

const (
	// gcPercent is by how much memory may grow before it is searched for garbage:
	// what ten thousand streams hold is large, and so would be a larger share of it.
	gcPercent = 50
	// unused is memory that is counted and never touched, so that it costs nothing;
	// half of it is what a small program may leave lying before it is searched.
	unused = 48 << 20
)

var ballast []byte //nolint:unused // it is there to be counted

// turns is how many threads may run goroutines on so many cores. One keeps its turn
// while it waits, the one that sends; there must be one for each core besides. Those
// beyond that run what the kernel finds a core for. Many more do harm: the garbage
// collector works on a quarter of them at a time, and has to stop all.
func turns(cores int) int { return cores + min(3*cores, max(6, cores/2+2)) }

// Tune makes the process fit to measure. A program calls it once, before it
// runs stages.
//
// It has more turns than cores, because the kernel gives a thread a core
// sooner than the runtime does.
//
// It collects garbage seldom while it is small, because a stream leaves little of
// it, and soon when it is large, because of the memory.
func Tune() {
	runtime.GOMAXPROCS(turns(runtime.NumCPU()))
	ballast = make([]byte, unused)
	debug.SetGCPercent(gcPercent)
}
