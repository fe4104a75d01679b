//go:build unix

package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tacho-bench/tacho/store"
)

// A pipe in the place of a file, which would never end, is an error.
func TestPipeIsRefused(t *testing.T) {
	for _, name := range []string{store.ManifestFile, store.StagesFile, store.RecordsFile, store.InstrumentsFile} {
		path := filepath.Join(create(t).Dir(), name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readAll(filepath.Dir(path)); err == nil || !strings.Contains(err.Error(), path+" is a pipe") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
