//go:build release

package main

import (
	"archive/zip"
	"bytes"
	"debug/buildinfo"
	"debug/macho"
	"debug/pe"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRelease builds the last commit in two directories and compares the results: no file
// depends on the directory or the time. Both builds share a build cache to save time. A
// third build compiles this machine's platform with an empty cache.
func TestRelease(t *testing.T) {
	commit := command(t, ".", "git", "rev-parse", "HEAD")
	origin := filepath.Join(t.TempDir(), "origin") // tags of the repository may change meanwhile
	command(t, ".", "git", "clone", "--quiet", command(t, ".", "git", "rev-parse", "--show-toplevel"), origin)
	command(t, origin, "git", "checkout", "--quiet", commit)
	first := released(t, origin, "here")
	entries, err := os.ReadDir(first)
	if err != nil {
		t.Fatal(err)
	}
	// Six archives and six bills, two packages, the formula, the Containerfile, the
	// checksums.
	if len(entries) != 17 {
		t.Errorf("%d files", len(entries))
	}
	if n := same(t, first, released(t, origin, "somewhere/else")); n != len(entries) {
		t.Errorf("%d files of %d are in both places", n, len(entries))
	}
	command(t, first, "sha256sum", "--check", "--quiet", "SHA256SUMS")
	foreign(t, first)
	bills(t, first)
	formula(t, first)
	opens(t, first, commit)
	t.Setenv("GOCACHE", t.TempDir())
	alone := released(t, origin, "alone", runtime.GOOS+"/"+runtime.GOARCH)
	if err := os.Remove(filepath.Join(alone, "SHA256SUMS")); err != nil { // covers fewer files
		t.Fatal(err)
	}
	// An archive and its bill, the Containerfile, and on Linux the package.
	if n := same(t, first, alone); n < 3 {
		t.Errorf("%d files were compiled alone", n)
	}
}

// released builds a clone of the repository in origin and returns the output directory.
func released(t *testing.T, origin, name string, platforms ...string) (dist string) {
	dir := filepath.Join(t.TempDir(), name)
	command(t, ".", "git", "clone", "--quiet", origin, dir)
	began := time.Now()
	command(t, dir, "go", append([]string{"run", "./internal/release", "dist"}, platforms...)...)
	t.Logf("%s: %.0f s", name, time.Since(began).Seconds())
	return filepath.Join(dir, "dist")
}

// same checks that every file of second exists in first with the same bytes. It returns
// the number of files in second.
func same(t *testing.T, first, second string) int {
	entries, err := os.ReadDir(second)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		a, err := os.ReadFile(filepath.Join(first, e.Name()))
		b, unread := os.ReadFile(filepath.Join(second, e.Name()))
		if err := errors.Join(err, unread); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is not the same in both places (%v)", e.Name(), err)
		}
		t.Logf("%9d bytes %s", len(b), e.Name())
	}
	return len(entries)
}

// foreign checks the archives for other systems.
func foreign(t *testing.T, dist string) {
	for _, machine := range []string{"amd64", "arm64"} {
		into := t.TempDir()
		command(t, into, "tar", "xzf", one(t, dist, "tacho_*_darwin_"+machine+".tar.gz"), "--strip-components", "1")
		if f, err := macho.Open(filepath.Join(into, "tacho")); err != nil {
			t.Error(err)
		} else {
			_ = f.Close()
		}
		z, err := zip.OpenReader(one(t, dist, "tacho_*_windows_"+machine+".zip"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range z.File {
			names = append(names, path.Base(f.Name))
			if path.Base(f.Name) != "tacho.exe" {
				continue
			}
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := pe.NewFile(bytes.NewReader(b)); err != nil {
				t.Error(err)
			}
		}
		for _, want := range []string{"tacho.exe", "LICENSE", noticesFile, "README.md", "tacho-bench.1"} {
			if !slices.Contains(names, want) {
				t.Errorf("the archive for Windows has no %s: %v", want, names)
			}
		}
	}
}

// bills checks that the bills of materials list the dependencies of the binaries.
func bills(t *testing.T, dist string) {
	all, err := filepath.Glob(filepath.Join(dist, "*.cdx.json"))
	if err != nil || len(all) != len(platforms) {
		t.Fatal(all, err)
	}
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var bill struct {
			Format     string `json:"bomFormat"`
			Components []component
		}
		if err := json.Unmarshal(b, &bill); err != nil || bill.Format != "CycloneDX" {
			t.Fatalf("%s: %v, %q", path, err, bill.Format)
		}
		for _, c := range bill.Components {
			if len(c.Licenses) != 1 || c.Licenses[0]["expression"] == "" {
				t.Errorf("%s: %s has no licence", path, c.Name)
			}
		}
		if !slices.ContainsFunc(bill.Components, func(c component) bool { return strings.HasPrefix(c.PURL, "pkg:golang/github.com/spf13/cobra@v") }) {
			t.Errorf("%s: %v", path, bill.Components)
		}
	}
}

// formula checks the Homebrew formula against the archives, and its syntax if Ruby is
// installed.
func formula(t *testing.T, dist string) {
	b, err := os.ReadFile(filepath.Join(dist, "tacho.rb"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`url ".*/(.*)"\n +sha256 "(.*)"`).FindAllStringSubmatch(string(b), -1)
	if len(named) != 4 {
		t.Errorf("it names %d archives", len(named))
	}
	for _, m := range named {
		if got := command(t, dist, "sha256sum", m[1]); !strings.HasPrefix(got, m[2]) {
			t.Errorf("%s is %s, and not %s", m[1], got, m[2])
		}
	}
	if _, err := exec.LookPath("ruby"); err == nil {
		command(t, dist, "ruby", "-wc", "tacho.rb")
	}
}

// one returns the only file that matches the pattern.
func one(t *testing.T, dist, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dist, pattern))
	if err != nil || len(found) != 1 {
		t.Fatal(pattern, found, err)
	}
	return found[0]
}

// opens checks the archive and the package for this machine.
func opens(t *testing.T, dist, commit string) {
	if runtime.GOOS != "linux" {
		t.Skip("its archive and package are looked into on Linux")
	}
	archive := one(t, dist, "tacho_*_linux_"+runtime.GOARCH+".tar.gz")
	into := t.TempDir()
	command(t, into, "tar", "xzf", archive, "--strip-components", "1")
	if out := command(t, into, "./tacho", "version"); !strings.Contains(out, commit[:12]) {
		t.Errorf("%s does not name the commit %s", out, commit)
	}
	if out := command(t, into, "tar", "tzf", archive); !strings.Contains(out, "man/tacho-bench.1") || !strings.Contains(out, "completions/tacho.fish") {
		t.Error(out)
	}
	checkNotices(t, into)
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		return
	}
	debian := one(t, dist, "tacho_*_"+runtime.GOARCH+".deb")
	if out := command(t, into, "dpkg-deb", "--info", debian); !strings.Contains(out, "Package: tacho") {
		t.Error(out)
	}
	command(t, into, "dpkg-deb", "--extract", debian, "root")
	if out := command(t, into, "root/usr/bin/tacho", "--version"); !strings.Contains(out, commit[:12]) {
		t.Error(out)
	}
	for _, want := range []string{"man/man1/tacho-bench.1", "bash-completion/completions/tacho", "doc/tacho/copyright", "doc/tacho/" + noticesFile} {
		if _, err := os.Stat(filepath.Join(into, "root/usr/share", want)); err != nil {
			t.Error(err)
		}
	}
}

// checkNotices checks that the notices in an archive name every module of its binary.
func checkNotices(t *testing.T, dir string) {
	text, err := os.ReadFile(filepath.Join(dir, noticesFile))
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(filepath.Join(dir, "tacho"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		if !strings.Contains(string(text), "\n"+m.Path+"@"+m.Version+", file LICENSE") {
			t.Errorf("%s lacks %s %s", noticesFile, m.Path, m.Version)
		}
	}
}
