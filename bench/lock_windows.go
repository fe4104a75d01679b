package bench

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock waits until nobody else has the file locked, and keeps it until it is
// closed.
func lock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &windows.Overlapped{})
}
