//go:build real

package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/internal/must"
)

// swapVariable names the directory in which a child of this test replaces files.
const swapVariable = "TACHO_TEST_SWAP"

// TestRealSwapChild is the second process of TestRealConfineAgainstAnotherProcess.
func TestRealSwapChild(t *testing.T) {
	top := os.Getenv(swapVariable)
	if top == "" {
		t.Skip("started by TestRealConfineAgainstAnotherProcess")
	}
	in := func(name string) string { return filepath.Join(top, name) }
	fmt.Println("ready")
	for os.Getppid() != 1 { // killed by the parent
		for _, other := range []string{"data/link", "data/pipe", "data/fd"} {
			for range 2 { // there and back
				_ = unix.Renameat2(unix.AT_FDCWD, in("data/f"), unix.AT_FDCWD, in(other), unix.RENAME_EXCHANGE)
			}
			for range 2 {
				_ = unix.Renameat2(unix.AT_FDCWD, in("data/sub"), unix.AT_FDCWD, in("data/dirlink"), unix.RENAME_EXCHANGE)
			}
		}
	}
}

// A second process exchanges a file and its directory with links to private files, a pipe and /proc/self/fd, while this
// process opens the file. No private file is read, and no open blocks.
func TestRealConfineAgainstAnotherProcess(t *testing.T) {
	top := t.TempDir()
	in := func(name string) string { return filepath.Join(top, name) }
	for name, text := range map[string]string{"data/f": "public", "data/sub/f": "public", "private/f": "private"} {
		write(t, in(name), text)
	}
	private := must.Get(os.Open(in("private/f")))(t)
	defer func() { _ = private.Close() }()
	for link, to := range map[string]string{
		"data/link": in("private/f"), "data/dirlink": in("private"), "data/fd": fmt.Sprintf("/proc/self/fd/%d", private.Fd()),
	} {
		must.Do(t, os.Symlink(to, in(link)))
	}
	must.Do(t, unix.Mkfifo(in("data/pipe"), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestRealSwapChild$")
	child.Env = append(os.Environ(), swapVariable+"="+top)
	out := must.Get(child.StdoutPipe())(t)
	must.Do(t, child.Start())
	defer func() { cancel(); _ = child.Wait() }()
	must.Get(out.Read(make([]byte, 6)))(t)
	defer Confine(Place{Path: in("data")})()
	outcomes := map[string]int{}
	for range 2_000 {
		for _, name := range []string{"data/f", "data/sub/f"} {
			for _, open := range []func(string) ([]byte, error){Read, ReadOnce} {
				b, err := open(in(name))
				switch {
				case err == nil && string(b) != "public":
					t.Fatalf("%s: read %q", name, b)
				case err == nil:
					outcomes["read"]++
				case errors.As(err, new(*NotPermittedError)):
					outcomes["not permitted"]++
				default:
					outcomes["refused"]++
				}
			}
		}
	}
	t.Log(outcomes)
}
