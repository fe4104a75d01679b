//go:build release

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestRelease makes a release of the last commit in two places, and holds one
// against the other.
func TestRelease(t *testing.T) {
	root := command(t, ".", "git", "rev-parse", "--show-toplevel")
	commit := command(t, ".", "git", "rev-parse", "HEAD")
	var dists []string
	for _, name := range []string{"here", "somewhere/else"} {
		dir := filepath.Join(t.TempDir(), name)
		command(t, ".", "git", "clone", "--quiet", root, dir)
		command(t, dir, "git", "checkout", "--quiet", commit)
		command(t, dir, "go", "run", "./internal/release", "dist")
		dists = append(dists, filepath.Join(dir, "dist"))
	}
	entries, err := os.ReadDir(dists[0])
	if err != nil {
		t.Fatal(err)
	}
	// Six archives and six bills, two packages, two recipes, the checksums.
	if len(entries) != 17 {
		t.Errorf("%d files", len(entries))
	}
	for _, e := range entries {
		a, err := os.ReadFile(filepath.Join(dists[0], e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dists[1], e.Name()))
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is not the same in both places (%v)", e.Name(), err)
		}
		t.Logf("%9d bytes %s", len(a), e.Name())
	}
	command(t, dists[0], "sha256sum", "--check", "--quiet", "SHA256SUMS")
	opens(t, dists[0], commit)
}

// opens looks into the archive and the package of this machine.
func opens(t *testing.T, dist, commit string) {
	if runtime.GOOS != "linux" {
		t.Skip("its archive and package are looked into on Linux")
	}
	archives, err := filepath.Glob(filepath.Join(dist, "tacho_*_linux_"+runtime.GOARCH+".tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatal(archives, err)
	}
	into := t.TempDir()
	command(t, into, "tar", "xzf", archives[0], "--strip-components", "1")
	if out := command(t, into, "./tacho", "version"); !strings.Contains(out, commit[:12]) {
		t.Errorf("%s does not name the commit %s", out, commit)
	}
	if out := command(t, into, "tar", "tzf", archives[0]); !strings.Contains(out, "man/tacho-bench.1") || !strings.Contains(out, "completions/tacho.fish") {
		t.Error(out)
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		return
	}
	packages, err := filepath.Glob(filepath.Join(dist, "tacho_*_"+runtime.GOARCH+".deb"))
	if err != nil || len(packages) != 1 {
		t.Fatal(packages, err)
	}
	if out := command(t, into, "dpkg-deb", "--info", packages[0]); !strings.Contains(out, "Package: tacho") {
		t.Error(out)
	}
	command(t, into, "dpkg-deb", "--extract", packages[0], "root")
	if out := command(t, into, "root/usr/bin/tacho", "--version"); !strings.Contains(out, commit[:12]) {
		t.Error(out)
	}
}
