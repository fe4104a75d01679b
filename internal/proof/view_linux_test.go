package proof

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/internal/must"
)

// terminal opens a pseudo-terminal of 80 by 24.
func terminal(b testing.TB) (ours, theirs *os.File) {
	b.Helper()
	ours = must.Get(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(b)
	fd := int(ours.Fd())
	must.Do(b, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number := must.Get(unix.IoctlGetInt(fd, unix.TIOCGPTN))(b)
	must.Do(b, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	theirs = must.Get(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0))(b)
	return ours, theirs
}

// BenchmarkView measures the CPU time of the live view: 1,000 streams of 50
// tokens/s each, with and without the view on a terminal, alternating.
//
// hermetic: only the benchmark starts a process.
func BenchmarkView(b *testing.B) {
	const pairs = 3
	server := start(b, "server", "20ms", "20ms")
	url := "http://" + server.line()
	measure := func(shown bool) float64 {
		ours, theirs := terminal(b)
		seen := make(chan int64, 1)
		go func() { n, _ := io.Copy(io.Discard, ours); seen <- n }() // ends with an error when the other end is closed
		flags := []string{"--num-prompts", "1000", "--request-rate", "1000", "--random-output-len", "500", "--no-html"}
		if !shown {
			flags = append(flags, "--progress", "none")
		}
		u := commandWith(b, func(cmd *exec.Cmd) error {
			cmd.Stdout, cmd.Stderr = theirs, theirs
			cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2} // in the foreground of its terminal
			cmd.Env = append(os.Environ(), "TERM=xterm-256color", "CI=", "NO_COLOR=")
			return cmd.Start()
		}, []string{url}, flags...)
		_ = theirs.Close() // all output was read
		if n := <-seen; (n > 10_000) != shown {
			b.Fatalf("%d bytes were drawn", n)
		}
		_ = ours.Close()
		return u.cpu
	}
	for range b.N {
		var with, without, more []float64
		for range pairs {
			a, z := measure(true), measure(false)
			with, without, more = append(with, a), append(without, z), append(more, 100*(a/z-1))
		}
		slices.Sort(more)
		b.Logf("processor seconds with the view %.2f, without it %.2f, %% more %.1f", with, without, more)
		b.ReportMetric(more[pairs/2], "%more")
	}
}
