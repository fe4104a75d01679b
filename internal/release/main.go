// Command release makes all that is handed to people of one commit: an archive for
// each platform, packages for Debian, a recipe for Homebrew, the bill of materials
// and the checksums. The same commit gives the same bytes wherever it is built: all
// times are the commit's.
//
//	go run ./internal/release DIRECTORY [PLATFORM ...]
//
// With platforms it makes what there is for those, and no recipe.
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

// platforms are those that there are binaries for.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// A release is one commit on its way out.
type release struct {
	dir     string // where all of it goes
	version string // as file names have it
	when    time.Time
	beside  []file // what stands beside the binary: licence, manual, completions
	made    []string
}

// A file of an archive.
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
	if err := run(os.Args[1], os.Args[2:]); err != nil {
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
	if err := r.gather(); err != nil {
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

// identify says which commit it is. What is not committed cannot be made again, so
// that it says so.
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
	b, err := exec.Command(command, args...).Output() //nolint:gosec,noctx // the words are ours, and it ends by itself
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s %s: %s", command, strings.Join(args, " "), exit.Stderr)
	}
	return strings.TrimSpace(string(b)), err
}

// build makes the binary of a platform.
func (r *release) build(platform, path string) error {
	system, machine, _ := strings.Cut(platform, "/")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w -buildid=", "-o", path, "./cmd/tacho") //nolint:gosec,noctx // the words are ours, and it ends by itself
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+machine, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// gather collects what stands beside the binary, with the binary of this machine.
func (r *release) gather() error {
	work, err := os.MkdirTemp("", "tacho-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // it is in a place for that
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
		r.beside = append(r.beside, file{name, 0o644, b})
	}
	if _, err := output(tacho, "man", filepath.Join(work, "man")); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(work, "man", "*.1"))
	if err != nil {
		return err
	}
	for _, path := range pages {
		b, err := os.ReadFile(path) //nolint:gosec // it was just written
		if err != nil {
			return err
		}
		r.beside = append(r.beside, file{"man/" + filepath.Base(path), 0o644, b})
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := output(tacho, "completion", shell)
		if err != nil {
			return err
		}
		r.beside = append(r.beside, file{"completions/tacho." + shell, 0o644, []byte(script + "\n")})
	}
	return nil
}

// platform makes what there is for one platform.
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
	defer func() { _ = os.RemoveAll(filepath.Dir(path)) }() // the archive has it
	binary, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	bill, err := r.bill(path, platform)
	if err != nil {
		return err
	}
	files := slices.Concat([]file{{name, 0o755, binary}}, r.beside)
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

// write keeps one file of the release.
func (r *release) write(name string, data []byte) error {
	r.made = append(r.made, name)
	return os.WriteFile(filepath.Join(r.dir, name), data, 0o644) //nolint:gosec // everybody may read it
}

// sum is the checksum of a file of the release.
func (r *release) sum(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	return fmt.Sprintf("%x", sha256.Sum256(b)), err
}

// checksums writes SHA256SUMS, which sha256sum -c reads.
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
	return os.WriteFile(filepath.Join(r.dir, "SHA256SUMS"), b.Bytes(), 0o644) //nolint:gosec // everybody may read it
}
