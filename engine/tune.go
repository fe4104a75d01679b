package engine

import (
	"runtime"
	"runtime/debug"
)

// Tune makes the process fit to measure. A program calls it once, before it
// runs stages.
//
// It has more threads than cores, because the kernel gives a thread a core
// sooner than the runtime does. The thread that receives must not wait: when it
// is late, it can no longer tell two segments apart.
//
// It collects garbage less often, because a stream leaves little of it, and
// collecting looks through the stacks of all open streams.
func Tune() {
	runtime.GOMAXPROCS(4 * runtime.NumCPU())
	debug.SetGCPercent(400)
}
