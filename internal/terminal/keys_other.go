//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package terminal

import "os"

// readKeys does nothing, because this system has no such terminals.
func readKeys(_ *os.File, _ func(key byte)) (stop func()) { return func() {} }
