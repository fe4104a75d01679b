package token

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, data, 0o600))
}
