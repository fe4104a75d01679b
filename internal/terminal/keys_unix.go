//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package terminal

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// readKeys calls pressed with each key until stop is called. Keys are neither echoed nor
// collected to lines; Ctrl-C and Ctrl-Z work as before. In the background nothing is
// read, because the kernel would stop the process.
func readKeys(tty *os.File, pressed func(key byte)) (stop func()) {
	fd := int(tty.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil || !inForeground(fd) {
		return func() {}
	}
	keys := *before
	keys.Lflag &^= unix.ICANON | unix.ECHO
	keys.Cc[unix.VMIN], keys.Cc[unix.VTIME] = 1, 0
	if unix.IoctlSetTermios(fd, setTermios, &keys) != nil {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		key := make([]byte, 1)
		for {
			select {
			case <-quit:
				return
			default:
			}
			ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if n, err := unix.Poll(ready, 100); err != nil || n == 0 || !inForeground(fd) { // milliseconds, in which readKeys ends
				continue
			}
			n, err := unix.Read(fd, key)
			if err != nil || n == 0 { // the terminal was closed
				<-quit
				return
			}
			pressed(key[0])
		}
	}()
	return sync.OnceFunc(func() {
		close(quit)
		<-done
		if inForeground(fd) {
			_ = unix.IoctlSetTermios(fd, setTermios, before) // fails if the terminal was closed
		}
	})
}

// inForeground reports whether the process may use the terminal.
func inForeground(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
