package engine

import (
	"runtime"
	"runtime/debug"
)

const (
	// gcPercent is how much the heap may grow before a garbage collection. The heap of ten
	// thousand streams is large, so a higher percentage would cost much memory.
	gcPercent = 50
	// ballastSize is memory that counts for the garbage collector but is never touched,
	// so that the ballast costs nothing. A small program can allocate half of this size
	// before a collection.
	ballastSize = 48 << 20
)

var ballast []byte //nolint:unused // it is there to be counted

// procs returns GOMAXPROCS for a number of cores. The sending thread keeps its P while it
// waits, so there must be one more P than cores. Further Ps let the kernel choose which
// thread runs. Many more Ps do harm, because the garbage collector uses a quarter of them
// and must stop all.
func procs(cores int) int { return cores + min(3*cores, max(6, cores/2+2)) }

// Tune prepares the process for measuring. A program calls it once, before it runs stages.
//
// Tune sets GOMAXPROCS above the number of cores, because the kernel gives a thread a core
// sooner than the runtime does.
//
// Tune makes garbage collections rare while the heap is small, because a stream leaves
// little garbage, and frequent if the heap is large, to save memory.
func Tune() {
	runtime.GOMAXPROCS(procs(runtime.NumCPU()))
	ballast = make([]byte, ballastSize)
	debug.SetGCPercent(gcPercent)
}
