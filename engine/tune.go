package engine

import (
	"runtime"
	"runtime/debug"
)

// Tune makes the process fit to measure; a program calls it once, before it
// runs stages. More threads than cores keep the thread that receives from
// waiting behind the time slice of a goroutine: the kernel shares the cores out
// in finer slices than the runtime does, and a receive that is late can no
// longer tell two segments apart. A higher threshold collects garbage less
// often: a stream leaves little of it, and collecting means looking through the
// stacks of all that are open.
func Tune() {
	runtime.GOMAXPROCS(4 * runtime.NumCPU())
	debug.SetGCPercent(400)
}
