package hub

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/fakehub"
	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
)

const dataset = "org/data"

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	must.Do(t, atomicfile.Write(path, data))
}

func dataHub(t *testing.T, files map[string]string) (*fakehub.Hub, Hub) {
	t.Helper()
	server := fakehub.New(t)
	server.Files[dataset+"@main"] = files
	return server, Hub{Endpoint: server.URL + "/", Home: t.TempDir()}
}

// Fetch stores a dataset file in the layout of Hugging Face's own tools and later reads it without network access.
func TestFetch(t *testing.T) {
	content := strings.Repeat("0123456789", 100_000)
	server, hub := dataHub(t, map[string]string{"data/train 1.jsonl": content})
	repo := Repo{Dataset: true, Name: dataset}
	list := must.Get(hub.List(t.Context(), repo))(t)
	commit := fakehub.Commit(dataset, "main")
	slices.Sort(list.Files)
	if list.Commit != commit || !slices.Equal(list.Files, []string{".gitattributes", "README.md", "data/train 1.jsonl"}) {
		t.Errorf("%+v", list)
	}
	var last, whole int64
	path := must.Get(hub.Fetch(t.Context(), repo, commit, "data/train 1.jsonl", func(done, all int64) { last, whole = done, all }))(t)
	if n := int64(len(content)); last != n || whole != n {
		t.Errorf("progress reported %d of %d bytes, want %d", last, whole, n)
	}
	folder := filepath.Join(hub.Home, "hub", "datasets--org--data")
	if want := filepath.Join(folder, "snapshots", commit, "data", "train 1.jsonl"); path != want {
		t.Errorf("kept in %s, want %s", path, want)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != content {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if ref, err := os.ReadFile(filepath.Join(folder, "refs", "main")); err != nil || string(ref) != commit {
		t.Errorf("the reference is %q, %v", ref, err)
	}
	blobs, err := os.ReadDir(filepath.Join(folder, "blobs"))
	if err != nil || len(blobs) != 1 || len(blobs[0].Name()) != 64 {
		t.Errorf("blobs %v, %v", blobs, err)
	}
	if target, err := os.Readlink(path); err != nil || target != filepath.Join("..", "..", "..", "blobs", blobs[0].Name()) {
		t.Errorf("the snapshot points at %q, %v", target, err)
	}

	asked := len(server.Requests())
	hub.Offline = true
	if local, err := hub.Local(repo); err != nil || !local.Complete || local.Commit != commit || len(local.Files) != 3 {
		t.Errorf("%+v, %v", local, err)
	}
	if again, err := hub.Fetch(t.Context(), repo, commit, "data/train 1.jsonl", nil); again != path || err != nil {
		t.Errorf("%s, %v", again, err)
	}
	if n := len(server.Requests()); n != asked {
		t.Errorf("the hub was asked %d times for what is here", n-asked)
	}
	if _, err := hub.Fetch(t.Context(), repo, commit, "README.md", nil); !errors.Is(err, ErrOffline) {
		t.Errorf("%v", err)
	}
	if _, err := hub.List(t.Context(), repo); !errors.Is(err, ErrOffline) {
		t.Errorf("%v", err)
	}
}

// Files downloaded by Hugging Face's own tools are found, even if incomplete.
func TestLocalWithoutListing(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "hub", "datasets--org--data")
	writeFile(t, filepath.Join(dir, "refs", "main"), []byte("beef"))
	writeFile(t, filepath.Join(dir, "snapshots", "beef", "data", "a.parquet"), []byte("x"))
	for _, hub := range []Hub{{Home: home}, {Home: t.TempDir(), Cache: filepath.Join(home, "hub")}} {
		list, err := hub.Local(Repo{Dataset: true, Name: dataset})
		if err != nil || list.Complete || !slices.Equal(list.Files, []string{"data/a.parquet"}) {
			t.Errorf("%+v, %v", list, err)
		}
		if _, err := hub.Local(Repo{Dataset: true, Name: "org/other"}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
		if _, err := hub.Local(Repo{Name: dataset}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a model of the same name: %v", err)
		}
	}
}

// An interrupted download resumes: by itself if each attempt makes progress, and later in another process.
func TestBrokenDownload(t *testing.T) {
	content := strings.Repeat("abc", 50_000)
	server, hub := dataHub(t, map[string]string{"a.jsonl": content})
	server.BreakAfter = 40_000
	repo := Repo{Dataset: true, Name: dataset}
	commit := fakehub.Commit(dataset, "main")
	path := must.Get(hub.Fetch(t.Context(), repo, commit, "a.jsonl", nil))(t)
	if b, err := os.ReadFile(path); err != nil || string(b) != content {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	var pieces []string
	for _, a := range server.Requests() {
		if piece, ok := strings.CutPrefix(a, "GET bytes "); ok {
			pieces = append(pieces, piece)
		}
	}
	if want := []string{"", "bytes=40000-", "bytes=80000-", "bytes=120000-"}; !slices.Equal(pieces, want) {
		t.Errorf("asked for %q, want %q", pieces, want)
	}

	// Another process left half of the file.
	server, hub = dataHub(t, map[string]string{"a.jsonl": content})
	first := must.Get(hub.stat(t.Context(), server.URL+"/datasets/org/data/resolve/"+commit+"/a.jsonl", repo))(t)
	writeFile(t, filepath.Join(hub.Home, "hub", "datasets--org--data", "blobs", first.etag+".incomplete"), []byte(content[:75_000]))
	path = must.Get(hub.Fetch(t.Context(), repo, commit, "a.jsonl", nil))(t)
	if b, err := os.ReadFile(path); err != nil || string(b) != content {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if asked := server.Requests(); asked[len(asked)-1] != "GET bytes bytes=75000-" {
		t.Errorf("%q", asked)
	}
}

func TestRefusedDownloads(t *testing.T) {
	commit := fakehub.Commit(dataset, "main")
	for name, test := range map[string]struct {
		change func(*fakehub.Hub, *Hub)
		file   string
		want   string
	}{
		"no token":     {func(s *fakehub.Hub, _ *Hub) { s.Token = "secret" }, "a.jsonl", "set a token (HF_TOKEN)"},
		"wrong token":  {func(s *fakehub.Hub, h *Hub) { s.Token, h.Token = "secret", "other" }, "a.jsonl", "use a token with access"},
		"gated":        {func(s *fakehub.Hub, _ *Hub) { s.Gated = true }, "a.jsonl", "accept the terms of the dataset at"},
		"no such file": {func(*fakehub.Hub, *Hub) {}, "b.jsonl", "404"},
		"too short":    {func(s *fakehub.Hub, _ *Hub) { s.LengthError = 5 }, "a.jsonl", "received 10 bytes, but the hub announced 15"},
		"too long":     {func(s *fakehub.Hub, _ *Hub) { s.LengthError = -5 }, "a.jsonl", "received 10 bytes, but the hub announced 5"},
		"other bytes":  {func(s *fakehub.Hub, _ *Hub) { s.WrongContent = true }, "a.jsonl", "the checksum is"},
		"outside":      {func(*fakehub.Hub, *Hub) {}, "../../a.jsonl", "not a file of a repository"},
		"unreachable": {func(_ *fakehub.Hub, h *Hub) {
			h.Client = &http.Client{Transport: &http.Transport{DialContext: new(memnet.Network).Dial}}
		}, "a.jsonl", "refused"},
	} {
		server, hub := dataHub(t, map[string]string{"a.jsonl": "abcdefghij"})
		test.change(server, &hub)
		if _, err := hub.Fetch(t.Context(), Repo{Dataset: true, Name: dataset}, commit, test.file, nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if left, _ := filepath.Glob(filepath.Join(hub.Home, "hub", "*", "blobs", "*")); len(left) != 0 {
			t.Errorf("%s left %q", name, left)
		}
	}
	server, hub := dataHub(t, nil)
	delete(server.Files, dataset+"@main")
	if _, err := hub.List(t.Context(), Repo{Dataset: true, Name: dataset}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "no such dataset") {
		t.Errorf("%v", err)
	}
}

// Snapshots of other tools are found by revision, through links to blobs.
func TestSnapshot(t *testing.T) {
	home := t.TempDir()
	repo := filepath.Join(home, "hub", "models--org--model")
	writeFile(t, filepath.Join(repo, "refs", "main"), []byte("c0ffee\n"))
	writeFile(t, filepath.Join(repo, "refs", "pr", "1"), []byte("beef"))
	writeFile(t, filepath.Join(repo, "snapshots", "c0ffee", "tokenizer.json"), nil)
	writeFile(t, filepath.Join(repo, "snapshots", "beef", "tokenizer.json"), nil)
	for revision, want := range map[string]string{"": "c0ffee", "main": "c0ffee", "c0ffee": "c0ffee", "pr/1": "beef", "beef": "beef"} {
		for _, h := range []Hub{{Home: home}, {Home: filepath.Join(home, "hub")}, {Cache: filepath.Join(home, "hub")}} {
			dir, err := h.Snapshot(Repo{Name: "org/model", Revision: revision})
			if err != nil || filepath.Base(dir) != want {
				t.Errorf("revision %q: %s, %v", revision, dir, err)
			}
		}
	}
	for _, name := range []string{"org/other", "../model", "org/../../etc", "org/model/x", "", "/abs"} {
		if _, err := (Hub{Home: home}).Snapshot(Repo{Name: name}); err == nil {
			t.Errorf("model %q: no error", name)
		}
	}
	for _, revision := range []string{"dead", "../main", "a b"} {
		if _, err := (Hub{Home: home}).Snapshot(Repo{Name: "org/model", Revision: revision}); err == nil {
			t.Errorf("revision %q: no error", revision)
		}
	}
}
