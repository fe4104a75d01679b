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

// Tune makes the process fit to measure. A program calls it once, before it
// runs stages.
//
// It has more threads than cores, because the kernel gives a thread a core
// sooner than the runtime does. The thread that receives must not wait: when it
// is late, it can no longer tell two segments apart.
//
// It collects garbage seldom while it is small, because a stream leaves little of
// it, and soon when it is large, because of the memory.
func Tune() {
	runtime.GOMAXPROCS(4 * runtime.NumCPU())
	ballast = make([]byte, unused)
	debug.SetGCPercent(gcPercent)
}
