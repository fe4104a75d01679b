package proof

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// ends returns the first and the last core available to this process.
func ends() (first, last int) {
	var set unix.CPUSet
	_ = unix.SchedGetaffinity(0, &set)
	const most = 1024
	first = -1
	for core := range most {
		if set.IsSet(core) {
			last = core
			if first < 0 {
				first = core
			}
		}
	}
	return first, last
}

// onCore runs start with the affinity of one core, which started processes
// inherit.
func onCore(core int, start func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread exits with its affinity
		var set unix.CPUSet
		set.Set(core)
		_ = unix.SchedSetaffinity(0, &set)
		start()
	}()
	<-done
}
