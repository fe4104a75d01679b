//go:build go1.26 && !go1.28 && (amd64 || arm64) && !race && !tacho_ordinary

package socket

import _ "unsafe" // for linkname

// For the Go runtime, the receive thread is in a system call for all of its life. It holds
// no P (Go's scheduler), so the runtime cannot take a P away from it: not after 10 ms, not
// to scan its stack for garbage, not to stop the world. On one core each of these kept the
// thread from receiving for 10 to 80 ms, because the thread had to wait until another
// thread had run and released a P.
//
// The code between the two calls must not allocate, write a pointer to the Go heap, wait
// for a lock, or call a function that may grow the stack. All of it is nosplit. The
// runtime ends the process if this code calls into the scheduler.
//
// Go promises none of this. So the build constraint names the Go versions and the
// architectures on which it was verified; CONTRIBUTING.md lists the checks to make before
// you extend it. The race detector and the counters of -race -cover need a P, so these
// builds use the ordinary receiver. Builds with the tag tacho_ordinary use it, too.

// canRunWithoutP reports whether this build has the receive thread without a P.
const canRunWithoutP = true

//go:linkname entersyscallblock runtime.entersyscallblock
//go:nosplit
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
//go:nosplit
func exitsyscall()

// receiveWithoutP receives until the poller ends, without a P.
//
//go:nosplit
func (t *thread) receiveWithoutP() {
	entersyscallblock()
	for load32(&t.ending) == 0 {
		n := t.poll()
		for i := range n {
			t.serve(&t.events[i])
		}
		t.finish(n)
	}
	exitsyscall()
}
