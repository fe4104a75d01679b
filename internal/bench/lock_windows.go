package bench

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock waits for an exclusive lock of the file. Closing the file releases the
// lock.
func lock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &windows.Overlapped{})
}
