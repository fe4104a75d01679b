package atomicfile

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

func TestReadIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	must.Do(t, os.WriteFile(path, bytes.Repeat([]byte("x"), 1000), 0o600))
	if b, err := read(path, 1000); len(b) != 1000 || err != nil {
		t.Errorf("%d bytes, %v, want all 1000", len(b), err)
	}
	if _, err := read(path, 999); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("one byte too many: %v", err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if _, err := Read("/dev/zero"); err == nil || !strings.Contains(err.Error(), "a device") {
		t.Errorf("a file without an end: %v", err)
	}
	if _, err := ReadOnce("/dev/zero"); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("a key without an end: %v", err)
	}
}
