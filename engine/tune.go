package engine

import "runtime"

// Tune makes the process fit to measure; a program calls it once, before it
// runs stages. More threads than cores keep the thread that receives from
// waiting behind the time slice of a goroutine: the kernel shares the cores out
// in finer slices than the runtime does, and a receive that is late can no
// longer tell two segments apart.
func Tune() { runtime.GOMAXPROCS(8 * runtime.NumCPU()) }
