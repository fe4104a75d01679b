package ui_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/bounded"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/ui"
	"github.com/tacho-bench/tacho/store"
)

// Notes of a stranger do not delay the list, however many tags or changes they have.
func TestNotesAreBounded(t *testing.T) {
	folder := t.TempDir()
	dir := keep(t, folder, kept{label: "a"})
	var tags bytes.Buffer
	for i := range 500_000 { // a quadratic search takes ten minutes
		fmt.Fprintf(&tags, `"t%d",`, i)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, store.NotesFile), fmt.Appendf(nil, `{"note":"n","tags":[%s"last"]}`, tags.Bytes()), 0o600))
	server := serve(t, ui.Options{Dir: folder})
	bounded.Run(t, 2<<30, func() {
		notes := items(t, server)[filepath.Base(dir)].Notes
		if len(notes.Tags) != 30 || notes.Tags[0] != "t0" || notes.Text != "n" {
			t.Errorf("%d tags, note %q", len(notes.Tags), notes.Text)
		}
		// Tags count after duplicates are removed.
		change := `{"run":"` + items(t, server)[filepath.Base(dir)].ID + `","tags":[` + strings.Repeat(`"a","",`, 1000) + `"b"]}`
		if status, body := ask(t, server, "POST", "/api/notes", change, nil); status != http.StatusOK || !strings.Contains(body, `"tags":["a","b"]`) {
			t.Errorf("%d %.200s", status, body)
		}
	})
}
