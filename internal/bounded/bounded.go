// Package bounded limits the time and memory of code under test, for fuzz targets of files that strangers send. Package
// testing limits neither.
package bounded

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// endless is the time after which code counts as never ending. Every input of a fuzz target takes milliseconds.
const endless = time.Minute

// Run calls f and fails the test if f allocates more than most bytes in total. If f allocates far more, or does not end, Run
// ends the process with a panic, and Go's fuzzing reports the input.
func Run(t testing.TB, most uint64, f func()) {
	t.Helper()
	done := make(chan struct{})
	defer close(done)
	start := allocated()
	go watch(done, start+4*most)
	f()
	if got := allocated() - start; got > most && !raced {
		t.Errorf("allocated %d MiB, more than %d MiB", got>>20, most>>20)
	}
}

// watch panics if the process allocates more than most bytes before done is closed, or if done is not closed in time.
func watch(done <-chan struct{}, most uint64) {
	often := time.NewTicker(100 * time.Millisecond)
	defer often.Stop()
	end := time.After(endless)
	for {
		select {
		case <-done:
			return
		case <-often.C:
			if got := allocated(); got > most && !raced {
				panic(fmt.Sprintf("allocated %d MiB", got>>20))
			}
		case <-end:
			stacks := make([]byte, 1<<16)
			panic(fmt.Sprintf("does not end\n%s", stacks[:runtime.Stack(stacks, true)]))
		}
	}
}

// allocated returns the bytes that the process has allocated since it started.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
