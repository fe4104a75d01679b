//go:build unix

package bench

import (
	"os"
	"syscall"
)

// lock waits for an exclusive lock of the file. Closing the file releases the
// lock.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
