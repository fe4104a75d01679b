//go:build unix

package filelock

import (
	"os"
	"syscall"
)

const errHeld = syscall.EWOULDBLOCK

func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
