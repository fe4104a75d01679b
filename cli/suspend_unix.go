//go:build unix

package cli

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// onSuspend has the terminal given back before Ctrl-Z stops the process, and taken
// again when it goes on. It returns what ends that.
func onSuspend(before, after func()) (stop func()) {
	asked, goes, done := make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(asked, syscall.SIGTSTP)
	signal.Notify(goes, syscall.SIGCONT)
	go func() {
		for {
			select {
			case <-asked:
				before()
				_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) // nobody may refuse it
			case <-goes: // and not before: it takes a while to stop
				after()
			case <-done:
				return
			}
		}
	}()
	return sync.OnceFunc(func() { signal.Stop(asked); signal.Stop(goes); close(done) })
}
