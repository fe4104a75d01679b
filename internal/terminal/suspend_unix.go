//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// onSuspend calls before when Ctrl-Z suspends the process, and after when it
// continues. stop ends this.
func onSuspend(before, after func()) (stop func()) {
	suspended, continued, done := make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(suspended, syscall.SIGTSTP)
	signal.Notify(continued, syscall.SIGCONT)
	go func() {
		for {
			select {
			case <-suspended:
				before()
				_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) // SIGSTOP cannot be blocked
			case <-continued: // SIGSTOP takes a while to take effect
				after()
			case <-done:
				return
			}
		}
	}()
	return sync.OnceFunc(func() { signal.Stop(suspended); signal.Stop(continued); close(done) })
}
