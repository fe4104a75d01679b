package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestConfine(t *testing.T) {
	top := t.TempDir()
	t.Chdir(top)
	for _, name := range []string{"data/a", "data/deep/b", "one", "other", "cache/models--x/t", "cache/datasets--x/t", "data2/c", "data/..."} {
		write(t, filepath.Join(top, name), "text")
	}
	in := func(name string) string { return filepath.Join(top, name) }
	for link, to := range map[string]string{"data/out": in("other"), "data/up": "../other", "data/in": "deep/b", "data/loop": "loop", "alias": "data", "data/outdir": top} {
		if err := os.Symlink(to, in(link)); err != nil {
			t.Skip(err) // Windows without the privilege
		}
	}
	if err := os.Link(in("other"), in("data/hard")); err != nil {
		t.Skip(err)
	}
	places := []Place{{Path: in("data")}, {Path: in("one")}, {Path: in("cache"), Prefix: "models--"}, {Path: in("missing")}}
	for _, c := range []struct {
		path string
		want string // part of the error; empty: readable
	}{
		{in("data/a"), ""},
		{"data/a", ""},
		{in("data/deep/b"), ""},
		{in("data/in"), ""},
		{in("data/hard"), ""}, // a hard link is the file, not a way to it; caches have many
		{in("data/..."), ""},
		{in("alias/a"), ""},
		{in("data/deep/../a"), ""},
		{top + "/other/../data/a", ""},
		{in("one"), ""},
		{in("cache/models--x/t"), ""},
		{in("cache/datasets--x/t"), "does not permit"},
		{in("cache"), "does not permit"},
		{in("other"), "--allow-read " + top},
		{"other", "does not permit"},
		{in("nothing"), "does not permit"},
		{in("data2/c"), "does not permit"},
		{in("data/out"), "does not permit"},
		{in("data/up"), "does not permit"},
		{in("data/outdir/other"), "does not permit"},
		{in("data/loop"), "too many links"},
		{top + "/data/../other", "does not permit"},
		{"data/../../" + filepath.Base(top) + "/other", "does not permit"},
		{in("one/x"), "not a directory"},
		{in("data/nothing"), "no such file"},
		{"owner/name", "no such file"}, // may be a model of the hub
		{"../owner/name", "does not permit"},
		{in("data\x00"), "does not permit"},
		{in("data/" + strings.Repeat("x", 5000)), "too long"},
		{"", "does not permit"},
		{"/proc/self/environ", "does not permit"},
		{"/proc/self/root" + in("other"), "does not permit"},
		{"/dev/stdin", "does not permit"},
		{"/", "does not permit"},
	} {
		undo := Confine(places...)
		b, err := Read(c.path)
		_, described := Stat(c.path)
		undo()
		switch {
		case runtime.GOOS == "windows" && c.want != "":
			if err == nil {
				t.Errorf("%q was read", c.path)
			}
		case c.want == "" && (err != nil || described != nil || string(b) != "text"):
			t.Errorf("%q: %q, %v, %v, want the text", c.path, b, err, described)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: %q, %v, want an error with %q", c.path, b, err, c.want)
		case c.want == "does not permit" && !errors.As(described, new(*NotPermittedError)):
			t.Errorf("Stat of %q: %v", c.path, described)
		}
		if b, err := Read(in("other")); err != nil || string(b) != "text" {
			t.Fatalf("after undo: %q, %v", b, err)
		}
	}
	defer Confine()()
	if _, err := Read(in("data/a")); !errors.As(err, new(*NotPermittedError)) {
		t.Errorf("without a place: %v", err)
	}
}

// A file that another user replaces by a link while it is opened is not read from elsewhere.
func TestConfineWhileLinksChange(t *testing.T) {
	top := t.TempDir()
	write(t, filepath.Join(top, "data/sub/f"), "public")
	write(t, filepath.Join(top, "private/f"), "private")
	sub, aside, link := filepath.Join(top, "data/sub"), filepath.Join(top, "data/aside"), filepath.Join(top, "data/link")
	if err := os.Symlink(filepath.Join(top, "private"), link); err != nil {
		t.Skip(err)
	}
	defer Confine(Place{Path: filepath.Join(top, "data")})()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(sub, aside)
			_ = os.Rename(link, sub)
			_ = os.Rename(sub, link)
			_ = os.Rename(aside, sub)
		}
	}()
	read := 0
	for range 5000 {
		b, err := Read(filepath.Join(sub, "f"))
		if err == nil && string(b) != "public" {
			t.Errorf("read %q", b)
			break
		}
		if err == nil {
			read++
		}
	}
	close(stop)
	<-done
	if read == 0 {
		t.Log("no read succeeded between the changes")
	}
	if _, err := Stat(filepath.Join(top, "nothing")); errors.Is(err, fs.ErrNotExist) {
		t.Error("a missing file outside is distinguished from a private file")
	}
}
