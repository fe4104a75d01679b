package filelock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tacho-bench/tacho/internal/filelock"
	"github.com/tacho-bench/tacho/internal/must"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		return must.Get(os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600))(t)
	}
	first, second := open(), open()
	must.Do(t, filelock.Lock(first))
	if err := filelock.Lock(second); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("second lock: %v, want ErrLocked", err)
	}
	must.Do(t, first.Close())
	if err := filelock.Lock(second); err != nil {
		t.Errorf("lock after the first was closed: %v", err)
	}
	_ = second.Close()
}
