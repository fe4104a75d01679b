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
)

// A run that appends its result waits while another run holds the file's lock.
func TestRealAppendLineWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "all.json")
	other, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock(other); err != nil {
		t.Fatal(err)
	}
	ours := make(chan error)
	go func() { ours <- appendLine(path, []byte(`{"by":"us"}`)) }()
	awaitLockWaiter(t, path)
	if _, err := other.WriteString(`{"by":"other"}`); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ours; err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if want := "{\"by\":\"other\"}\n{\"by\":\"us\"}"; string(got) != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// awaitLockWaiter waits until the kernel lists a waiter for the lock of a file.
func awaitLockWaiter(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	waiter := regexp.MustCompile(fmt.Sprintf(`-> FLOCK .*:%d 0 EOF`, info.Sys().(*syscall.Stat_t).Ino))
	for ; t.Context().Err() == nil; time.Sleep(time.Millisecond) {
		locks, err := os.ReadFile("/proc/locks")
		if err != nil {
			t.Fatal(err)
		}
		if waiter.Match(locks) {
			return
		}
	}
}
