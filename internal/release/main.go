// Command release builds all release files of one commit: an archive for each platform,
// Debian packages, a Homebrew formula, bills of materials and checksums. Builds are
// reproducible: the same commit gives the same bytes on any machine, because all
// timestamps are the time of the commit.
//
//	go run ./internal/release DIRECTORY [PLATFORM ...]
//	go run ./internal/release -notices
//
// If platforms are given, only their files are built, without a Homebrew formula. With
// -notices it prints the licences of all modules in the binaries.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// platforms are the platforms with a binary.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// release is the release of one commit.
type release struct {
	dir     string // output directory
	version string // version in file names
	when    time.Time
	extras  []file // files shipped with the binary: licences, manual, completions
	notices map[string]*notice
	made    []string
}

// file is a file in an archive.
type file struct {
	name string
	mode int64
	data []byte
}

func main() {
	if len(os.Args) < 2 {
		_, _ = fmt.Fprintln(os.Stderr, "release: name the directory to write to")
		os.Exit(2)
	}
	do := func() error { return run(os.Args[1], os.Args[2:]) }
	if os.Args[1] == "-notices" {
		do = printNotices
	}
	if err := do(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(dir string, some []string) error {
	for _, p := range some {
		if !slices.Contains(platforms, p) {
			return fmt.Errorf("%s: there are %s", p, strings.Join(platforms, ", "))
		}
	}
	r := &release{dir: dir}
	if err := r.identify(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := r.collectExtras(); err != nil {
		return err
	}
	wanted := some
	if len(some) == 0 {
		wanted = platforms
	}
	for _, p := range wanted {
		if err := r.platform(p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	if len(some) == 0 {
		if err := r.homebrew(); err != nil {
			return err
		}
	}
	return r.checksums()
}

// identify reads the version and time of the commit. The version ends with -dirty if
// there are uncommitted changes, because such a build is not reproducible.
func (r *release) identify() error {
	described, err := output("git", "describe", "--tags", "--always", "--dirty", "--abbrev=12")
	if err != nil {
		return err
	}
	r.version = strings.TrimPrefix(described, "v")
	seconds, err := output("git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	r.when = time.Unix(n, 0).UTC()
	return err
}

func output(command string, args ...string) (string, error) {
	b, err := exec.Command(command, args...).Output() //nolint:gosec,noctx // fixed arguments, and the command terminates
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s %s: %s", command, strings.Join(args, " "), exit.Stderr)
	}
	return strings.TrimSpace(string(b)), err
}

// build compiles the binary of a platform.
func (r *release) build(platform, path string) error {
	system, machine, _ := strings.Cut(platform, "/")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w -buildid=", "-o", path, "./cmd/tacho") //nolint:gosec,noctx // fixed arguments, and the command terminates
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+machine, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// collectExtras collects the files shipped with the binary. It builds tacho for this machine to
// generate the manual and the completions.
func (r *release) collectExtras() error {
	work, err := os.MkdirTemp("", "tacho-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // a leftover temporary directory is harmless
	host, err := output("go", "env", "GOHOSTOS", "GOHOSTARCH")
	if err != nil {
		return err
	}
	tacho := filepath.Join(work, "tacho")
	if err := r.build(strings.ReplaceAll(host, "\n", "/"), tacho); err != nil {
		return err
	}
	container, err := os.ReadFile("Containerfile")
	if err != nil {
		return err
	}
	if err := r.write("Containerfile", container); err != nil {
		return err
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		r.extras = append(r.extras, file{name, 0o644, b})
	}
	if r.notices, err = collectNotices(); err != nil {
		return err
	}
	notices, err := noticesText(r.notices)
	if err != nil {
		return err
	}
	r.extras = append(r.extras, file{noticesFile, 0o644, notices})
	if _, err := output(tacho, "man", filepath.Join(work, "man")); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(work, "man", "*.1"))
	if err != nil {
		return err
	}
	for _, path := range pages {
		b, err := os.ReadFile(path) //nolint:gosec // written above
		if err != nil {
			return err
		}
		r.extras = append(r.extras, file{"man/" + filepath.Base(path), 0o644, b})
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := output(tacho, "completion", shell)
		if err != nil {
			return err
		}
		r.extras = append(r.extras, file{"completions/tacho." + shell, 0o644, []byte(script + "\n")})
	}
	return nil
}

// platform builds the files of one platform.
func (r *release) platform(platform string) error {
	name := "tacho"
	if strings.HasPrefix(platform, "windows/") {
		name += ".exe"
	}
	stem := fmt.Sprintf("tacho_%s_%s", r.version, strings.ReplaceAll(platform, "/", "_"))
	path := filepath.Join(r.dir, stem, name)
	if err := r.build(platform, path); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(filepath.Dir(path)) }() // the archive contains it
	binary, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	bill, err := r.bill(path, platform)
	if err != nil {
		return err
	}
	files := slices.Concat([]file{{name, 0o755, binary}}, r.extras)
	pack, ending := r.tarGz, ".tar.gz"
	if strings.HasPrefix(platform, "windows/") {
		pack, ending = r.zip, ".zip"
	}
	archive, err := pack(stem, files)
	if err != nil {
		return err
	}
	err = errors.Join(r.write(stem+ending, archive), r.write(stem+".cdx.json", bill))
	if system, machine, _ := strings.Cut(platform, "/"); err == nil && system == "linux" {
		return r.deb(machine, binary)
	}
	return err
}

// write writes one file of the release.
func (r *release) write(name string, data []byte) error {
	r.made = append(r.made, name)
	return os.WriteFile(filepath.Join(r.dir, name), data, 0o644) //nolint:gosec // meant to be public
}

// sum returns the checksum of a file of the release.
func (r *release) sum(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	return fmt.Sprintf("%x", sha256.Sum256(b)), err
}

// checksums writes SHA256SUMS for sha256sum -c.
func (r *release) checksums() error {
	var b bytes.Buffer
	slices.Sort(r.made)
	for _, name := range r.made {
		sum, err := r.sum(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, name)
	}
	return os.WriteFile(filepath.Join(r.dir, "SHA256SUMS"), b.Bytes(), 0o644) //nolint:gosec // meant to be public
}
