//go:build unix

package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/store"
)

// A pipe in the place of a file, which would never end, is an error.
func TestPipeIsRefused(t *testing.T) {
	for _, name := range []string{store.ManifestFile, store.StagesFile, store.RecordsFile, store.InstrumentsFile} {
		path := filepath.Join(create(t).Dir(), name)
		must.Do(t, os.Remove(path))
		must.Do(t, syscall.Mkfifo(path, 0o600))
		if err := readAll(filepath.Dir(path)); err == nil || !strings.Contains(err.Error(), path+" is a pipe") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
