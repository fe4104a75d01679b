package cluster

import (
	"os"

	"golang.org/x/sys/windows"
)

// tryLock locks a file until it is closed, unless somebody else has.
func tryLock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
}
