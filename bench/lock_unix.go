//go:build unix

package bench

import (
	"os"
	"syscall"
)

// lock waits until nobody else has the file locked, and keeps it until it is
// closed.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
