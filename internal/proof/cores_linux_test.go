package proof

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// ends are the first and the last of the cores that we may use.
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

// onCore has a process that is started within run on one core.
func onCore(core int, start func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: its affinity ends with it
		var set unix.CPUSet
		set.Set(core)
		_ = unix.SchedSetaffinity(0, &set)
		start()
	}()
	<-done
}
