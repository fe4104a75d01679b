package solely_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tacho/internal/solely"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, second := open(), open()
	if err := solely.Lock(first); err != nil {
		t.Fatal(err)
	}
	if err := solely.Lock(second); !errors.Is(err, solely.ErrTaken) {
		t.Errorf("two have it: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := solely.Lock(second); err != nil {
		t.Errorf("nobody has it, and %v", err)
	}
	_ = second.Close()
}
