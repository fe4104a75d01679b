// Package filelock locks files against other processes.
package filelock

import (
	"errors"
	"os"
)

// ErrLocked reports a file locked by another process.
var ErrLocked = errors.New("another process holds the lock")

// Lock locks f until f is closed or the process ends. If the file system does not support locks, Lock returns nil.
func Lock(f *os.File) error {
	if errors.Is(tryLock(f), errHeld) {
		return ErrLocked
	}
	return nil
}
