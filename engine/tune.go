package engine

import (
	"runtime"
	"runtime/debug"
)

// Tune makes the process fit to measure; a program calls it once, before it
// runs stages. More threads than cores keep the bytes of a stream from waiting
// behind another goroutine's time slice: the kernel shares the cores out in
// finer slices than the runtime does, and a read that is late can no longer
// tell two segments apart. A higher threshold collects garbage less often.
func Tune() {
	runtime.GOMAXPROCS(8 * runtime.NumCPU())
	debug.SetGCPercent(400)
}
