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
	asked, goes, done := make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(asked, syscall.SIGTSTP)
	signal.Notify(goes, syscall.SIGCONT)
	go func() {
		for {
			select {
			case <-asked:
				before()
				_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) // SIGSTOP cannot be blocked
			case <-goes: // SIGSTOP takes a while to take effect
				after()
			case <-done:
				return
			}
		}
	}()
	return sync.OnceFunc(func() { signal.Stop(asked); signal.Stop(goes); close(done) })
}
