// Package solely lets one process at a time have a file.
package solely

import (
	"errors"
	"os"
)

// ErrTaken is a file that another process has.
var ErrTaken = errors.New("another process has it")

// Lock has a file until it is closed, or the process ends. Where the file system
// knows no locks, everybody has it.
func Lock(f *os.File) error {
	if errors.Is(tryLock(f), errHeld) {
		return ErrTaken
	}
	return nil
}
