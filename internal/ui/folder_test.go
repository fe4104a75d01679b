package ui_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/ui"
	"github.com/tacho-bench/tacho/store"
)

// A run directory with a link or a pipe cannot be opened, even if the link appears after
// the run was listed.
func TestNoPlainFiles(t *testing.T) {
	folder := t.TempDir()
	dir, later := keep(t, folder, kept{label: "a"}), keep(t, folder, kept{label: "later"})
	outside := filepath.Join(t.TempDir(), "page.html")
	must.Do(t, os.WriteFile(outside, []byte("secret"), 0o600))
	must.Do(t, os.Symlink(outside, filepath.Join(dir, store.PageFile)))
	server := serve(t, ui.Options{Dir: folder})
	all := items(t, server)
	it, second := all[filepath.Base(dir)], all[filepath.Base(later)]
	if !strings.Contains(it.Problem, "not a regular file") {
		t.Errorf("a link is accepted as a file: %q", it.Problem)
	}
	for _, name := range []string{store.PageFile, store.NotesFile} {
		must.Do(t, os.Symlink(outside, filepath.Join(later, name)))
	}
	for _, id := range []string{it.ID, second.ID} {
		if status, body := ask(t, server, "GET", "/page?run="+id, "", nil); status == http.StatusOK || strings.Contains(body, "secret") {
			t.Errorf("%d %.100s", status, body)
		}
	}
	if got := items(t, server)[filepath.Base(later)]; !strings.Contains(got.Problem, "not a regular file") {
		t.Errorf("a later link is accepted as a file: %q", got.Problem)
	}
	ask(t, server, "POST", "/api/notes", `{"run":"`+second.ID+`","note":"overwritten"}`, nil)
	if b, err := os.ReadFile(outside); err != nil || string(b) != "secret" {
		t.Errorf("the file outside the folder is now %q, %v", b, err)
	}
}

// A live state that is a link does not send the file behind the link to the browser.
func TestLiveStateIsNoLink(t *testing.T) {
	folder, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside.json")
	first := keep(t, folder, kept{label: "a", cut: true})
	second := keep(t, folder, kept{label: "b", cut: true})
	synctest.Test(t, func(t *testing.T) {
		runs(t, filepath.Dir(outside), snapshot(3, "secret"))
		must.Do(t, os.Rename(filepath.Join(filepath.Dir(outside), store.LiveFile), outside))
		must.Do(t, os.Symlink(outside, filepath.Join(first, store.LiveFile)))
		runs(t, second, snapshot(4, "fine"))
		lines := watch(t, ui.Options{Dir: folder, Host: ui.Loopback})
		var said strings.Builder
		for lines.Scan() {
			said.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), `"at_s":4,`) {
				break
			}
		}
		must.Do(t, os.Remove(filepath.Join(second, store.LiveFile))) // replace the state of a running run, too
		must.Do(t, os.Symlink(outside, filepath.Join(second, store.LiveFile)))
		for lines.Scan() {
			said.WriteString(lines.Text() + "\n")
			if strings.HasPrefix(lines.Text(), "data: [") && !strings.Contains(lines.Text(), `"state":"running"`) {
				break
			}
		}
		if strings.Contains(said.String(), "secret") {
			t.Errorf("the events contain the file behind the link: %.500s", said.String())
		}
	})
}

// A folder given through a link is shown. A link inside the folder is not followed.
func TestFolderThroughLink(t *testing.T) {
	folder, place, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	dir := keep(t, folder, kept{label: "a"})
	other := keep(t, elsewhere, kept{label: "b"})
	link := filepath.Join(place, "link")
	must.Do(t, os.Symlink(folder, link))
	must.Do(t, os.Symlink(other, filepath.Join(folder, "link")))
	server := serve(t, ui.Options{Dir: link})
	all := items(t, server)
	it, ok := all[filepath.Base(dir)]
	if !ok || it.Problem != "" || len(all) != 1 {
		t.Fatalf("the list is %+v", all)
	}
	if status, _ := ask(t, server, "GET", "/page?run="+it.ID, "", nil); status != http.StatusOK {
		t.Errorf("the report: %d", status)
	}
	if status, body := ask(t, server, "POST", "/api/notes", `{"run":"`+it.ID+`","note":"x"}`, nil); status != http.StatusOK {
		t.Errorf("the note: %d %s", status, body)
	}
	if status, body := ask(t, server, "POST", "/api/delete", `{"run":"`+it.ID+`"}`, nil); status != http.StatusOK {
		t.Errorf("the deletion: %d %s", status, body)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error("the run behind a link is gone:", err)
	}
}

func TestNotesAndDelete(t *testing.T) {
	folder := t.TempDir()
	dir, running := keep(t, folder, kept{label: "a"}), keep(t, folder, kept{label: "b", cut: true})
	runs(t, running, snapshot(1, ""))
	server := serve(t, ui.Options{Dir: folder})
	all := items(t, server)
	id := all[filepath.Base(dir)].ID
	save := func(body string) ui.Notes {
		t.Helper()
		if status, said := ask(t, server, "POST", "/api/notes", `{"run":"`+id+`",`+body+`}`, nil); status != http.StatusOK {
			t.Fatalf("%d %s", status, said)
		}
		return items(t, server)[filepath.Base(dir)].Notes
	}
	if n := save(`"note":"before the new driver","tags":["good","good"," a  b ","` + strings.Repeat("x", 99) + `"]`); n.Text != "before the new driver" || strings.Join(n.Tags, ",") != "good,a-b" {
		t.Errorf("notes are %+v", n)
	}
	// Every change is logged, and a client cannot write the log.
	n := save(`"note":"driver","tags":["bad"],"log":[]`)
	if len(n.Log) != 2 || n.Log[0].What != "tag added: good; tag added: a-b; note changed from 0 to 21 characters" || n.Log[1].What != "tag added: bad; tag removed: good; tag removed: a-b; note changed from 21 to 6 characters" ||
		n.Log[1].From != "127.0.0.1" || n.Log[1].At.IsZero() {
		t.Errorf("the log is %+v", n.Log)
	}
	if n = save(`"note":"driver","tags":["bad"]`); len(n.Log) != 2 {
		t.Errorf("saving the same is logged: %+v", n.Log)
	}
	if status, _ := ask(t, server, "POST", "/api/delete", `{"run":"`+all[filepath.Base(running)].ID+`"}`, nil); status != http.StatusConflict {
		t.Errorf("deleting a running run: %d", status)
	}
	if status, body := ask(t, server, "POST", "/api/delete", `{"run":"`+id+`"}`, nil); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("the run still exists:", err)
	}
	b := must.Get(os.ReadFile(filepath.Join(folder, ".tacho-deleted")))(t)
	var gone struct {
		From, Run string
		Requests  int
		Notes     ui.Notes
	}
	must.Do(t, json.Unmarshal(b, &gone))
	if gone.From != "127.0.0.1" || gone.Run != filepath.Base(dir) || gone.Requests != 120 || len(gone.Notes.Log) != 2 {
		t.Errorf("the deletion is logged as %s", b)
	}
}

// A run is not deleted if the deletion cannot be logged.
func TestDeleteNeedsLog(t *testing.T) {
	folder, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	dir := keep(t, folder, kept{label: "a"})
	must.Do(t, os.Symlink(outside, filepath.Join(folder, ".tacho-deleted")))
	server := serve(t, ui.Options{Dir: folder})
	if status, body := ask(t, server, "POST", "/api/delete", `{"run":"`+items(t, server)[filepath.Base(dir)].ID+`"}`, nil); status != http.StatusInternalServerError {
		t.Errorf("%d %s", status, body)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error("the run is gone:", err)
	}
	if _, err := os.Stat(outside); !os.IsNotExist(err) {
		t.Error("the log was written through a link")
	}
}
