//go:build unix

package cluster

import (
	"os"
	"syscall"
)

// tryLock locks a file until it is closed, unless somebody else has.
func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
