package cli

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/terminal"
)

// A second signal exits the process, unless it is an echo of the first.
func TestSecondSignal(t *testing.T) {
	for after, want := range map[time.Duration]int{0: 0, time.Millisecond: 0, time.Second: 143} {
		synctest.Test(t, func(t *testing.T) {
			var said strings.Builder
			code, signals := 0, make(chan os.Signal)
			env := &Env{Stderr: &said, Interrupt: signals, Kill: func(c int) { code = c }, again: &atomic.Bool{}, keeps: &atomic.Bool{}, reads: &atomic.Bool{}, altScreen: terminal.NewAltScreen(&said)}
			ctx, stop := interruptible(context.Background(), env)
			defer stop()
			signals <- syscall.SIGTERM
			<-ctx.Done()
			time.Sleep(after)
			signals <- syscall.SIGTERM
			synctest.Wait()
			if code != want {
				t.Errorf("%v after the first it is ended with %d, want %d", after, code, want)
			}
			if !strings.HasPrefix(said.String(), "\nStopping. Press") {
				t.Errorf("it says %q", said.String())
			}
		})
	}
}
