//go:build go1.26 && !go1.28 && (amd64 || arm64) && !race && !tacho_ordinary

package transport

import _ "unsafe" // for linkname

// The receive thread is in a system call as far as Go's runtime knows, for all of
// its life. It holds no P (Go's scheduler) that the runtime could take away: not
// after 10 ms, not to scan its stack for garbage, not to stop the world. On one core
// each of these kept the thread from receiving for 10 to 80 ms, because it had to wait
// until another thread had run and released a P.
//
// The code between the two calls must not allocate, write a pointer to the Go heap, wait
// for a lock, or call a function that may grow the stack. All of it is nosplit. The
// runtime ends the process if this code calls into the scheduler.
//
// Go promises none of this. So the build constraint names the Go versions and the
// architectures on which it was verified; see CONTRIBUTING.md for what to verify before
// you extend it. The race detector and the counters of -race -cover need a P, so these
// builds have the ordinary receiver. Builds with the tag tacho_ordinary have it, too.

// hasFree says whether this build has the receive thread without a P.
const hasFree = true

//go:linkname entersyscallblock runtime.entersyscallblock
//go:nosplit
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
//go:nosplit
func exitsyscall()

// free receives until the poller ends, without a P.
//
//go:nosplit
func (t *thread) free() {
	entersyscallblock()
	for load32(&t.ending) == 0 {
		n := t.look()
		for i := range n {
			t.serve(&t.events[i])
		}
		t.finish(n)
	}
	exitsyscall()
}
