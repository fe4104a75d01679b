package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// A run is found by the start of its name, and by its label. The newest of several runs with a label counts.
func TestFindRunByLabel(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"20260301-120000-before", "20260301-120001-after", "20260301-120002-after", "20260301-120003-not-before"} {
		if err := os.MkdirAll(filepath.Join("runs", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	env := &Env{Getenv: func(string) string { return "" }}
	for word, want := range map[string]string{
		"before": "20260301-120000-before", "after": "20260301-120002-after", "20260301-120001": "20260301-120001-after", "fore": "", "2026": "",
	} {
		got, err := findRun(env, word)
		if want != "" && got != filepath.Join("runs", want) || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v", word, got, err)
		}
	}
}
