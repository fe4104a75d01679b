package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A run that appends its result waits for another that is in the middle of it.
func TestAppendLineWaits(t *testing.T) {
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
	for _, part := range []string{`{"by":`, `"other"}`} {
		time.Sleep(20 * time.Millisecond) // time enough to get in the way
		if _, err := other.WriteString(part); err != nil {
			t.Fatal(err)
		}
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
