//go:build real

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

// A run that appends its result waits while another run holds the file's lock.
func TestRealAppendLineWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "all.json")
	other := must.Get(os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600))(t)
	must.Do(t, lock(other))
	ours := make(chan error)
	go func() { ours <- appendLine(path, []byte(`{"by":"us"}`)) }()
	awaitLockWaiter(t, path)
	must.Get(other.WriteString(`{"by":"other"}`))(t)
	must.Do(t, other.Close())
	must.Do(t, <-ours)
	got, err := os.ReadFile(path)
	if want := "{\"by\":\"other\"}\n{\"by\":\"us\"}"; string(got) != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// awaitLockWaiter waits until the kernel lists a waiter for the lock of a file.
func awaitLockWaiter(t *testing.T, path string) {
	t.Helper()
	info := must.Get(os.Stat(path))(t)
	waiter := regexp.MustCompile(fmt.Sprintf(`-> FLOCK .*:%d 0 EOF`, info.Sys().(*syscall.Stat_t).Ino))
	for ; t.Context().Err() == nil; time.Sleep(time.Millisecond) {
		locks := must.Get(os.ReadFile("/proc/locks"))(t)
		if waiter.Match(locks) {
			return
		}
	}
}
