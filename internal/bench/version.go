package bench

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"

	"github.com/tacho-bench/tacho/outcome"
)

// described is the output of git describe, set by the Makefile.
var described string

// Version returns the version the binary was built from, in a form that git knows.
func Version() string {
	if described != "" {
		return described
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return info.Main.Version + " " + s.Value[:12]
		}
	}
	return info.Main.Version
}

// Build returns the version. If the commit is unknown, a hash of the executable is added, because two such builds may
// differ.
var Build = sync.OnceValue(func() string {
	v := Version()
	if !outcome.UnknownBuild(v) {
		return v
	}
	path, err := os.Executable()
	if err != nil {
		return v
	}
	f, err := os.Open(path)
	if err != nil {
		return v
	}
	defer func() { _ = f.Close() }() // read-only
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return v
	}
	return fmt.Sprintf("%s, executable sha256:%.6x", v, sum.Sum(nil))
})
