//go:build image

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// command returns the trimmed output of a program.
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

// standIn builds a replacement for the base image from this machine's shell, git,
// certificates and Go, so that the test needs no registry.
const standIn = `
root=$(buildah mount $1)
mkdir -p $root/usr/bin $root/usr/lib $root/usr/lib64 $root/usr/local $root/etc/ssl/certs $root/go
for d in bin lib lib64; do ln -s usr/$d $root/$d; done
mkdir -m 1777 $root/tmp
for program in sh bash env cp mkdir git dirname sort find grep sed comm cut tr basename cat; do
	cp -L $(command -v $program) $root/usr/bin/
	for library in $(ldd $(command -v $program) | grep -o '/[^ ]*'); do
		mkdir -p $root/$(dirname $library) && cp -L $library $root/$library
	done
done
cp -L /etc/ssl/certs/ca-certificates.crt $root/etc/ssl/certs/
cp -a $(go env GOROOT) $root/usr/local/go
buildah config --env PATH=/usr/local/go/bin:/usr/bin --env GOPATH=/go --env GOTOOLCHAIN=local --env GOCACHE=/go/cache $1
buildah commit --quiet --rm $1 docker.io/library/$2
`

// TestImage builds the image of the last commit from the Containerfile and runs a
// benchmark in it. The container runs as an unprivileged user and contains only the
// program.
func TestImage(t *testing.T) {
	store := t.TempDir()
	conf := filepath.Join(store, "storage.conf")
	if err := os.WriteFile(conf, []byte("[storage]\ndriver = \"vfs\"\ngraphroot = \""+store+"/graph\"\nrunroot = \""+store+"/run\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONTAINERS_STORAGE_CONF", conf)
	t.Setenv("STORAGE_DRIVER", "vfs")
	t.Setenv("BUILDAH_ISOLATION", "chroot")
	root, commit := command(t, ".", "git", "rev-parse", "--show-toplevel"), command(t, ".", "git", "rev-parse", "HEAD")
	dir := filepath.Join(t.TempDir(), "tacho")
	command(t, ".", "git", "clone", "--quiet", root, dir)
	command(t, dir, "git", "checkout", "--quiet", commit)
	file, err := os.ReadFile(filepath.Join(dir, "Containerfile"))
	if err != nil {
		t.Fatal(err)
	}
	_, from, _ := strings.Cut(string(file), "FROM ")
	base, _, _ := strings.Cut(from, " ")
	command(t, dir, "bash", "-euc", standIn, "standIn", command(t, dir, "buildah", "from", "scratch"), base)
	command(t, dir, "buildah", "bud", "--pull-never", "--volume", command(t, dir, "go", "env", "GOMODCACHE")+":/go/pkg/mod", "--volume", command(t, dir, "go", "env", "GOCACHE")+":/go/cache",
		"-f", "Containerfile", "-t", "tacho", ".")
	container := command(t, dir, "buildah", "from", "--pull-never", "localhost/tacho")
	inside := func(args ...string) string {
		return command(t, dir, "buildah", append([]string{"run", container, "--"}, args...)...)
	}
	if out := inside("/tacho", "--version"); !strings.Contains(out, commit[:12]) {
		t.Errorf("%s does not name the commit %s", out, commit)
	}
	if out := inside("/tacho", "bench", "--sim", "vllm-8b-h100", "--num-prompts", "5", "--random-output-len", "10"); !strings.Contains(out, "Successful requests:                     5 ") {
		t.Error(out)
	}
	if out, err := exec.Command("buildah", "run", container, "--", "/bin/sh", "-c", "true").CombinedOutput(); err == nil {
		t.Errorf("there is a shell: %s", out)
	}
	mount := command(t, dir, "buildah", "mount", container)
	if out := command(t, mount, "find", "bench/runs", "-name", "summary.json", "-uid", "65532", "-gid", "65532"); out == "" {
		t.Error("no run is kept, or another user owns it")
	}
}
