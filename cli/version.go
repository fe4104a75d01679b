package cli

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/spf13/cobra"

	"tacho/outcome"
)

// version is what the binary was built from.
func version() string {
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

// build is the version, and for a build that does not know its commit a hash of the
// executable: two such builds may differ.
var build = sync.OnceValue(func() string {
	v := version()
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
	defer func() { _ = f.Close() }() // it was only read
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return v
	}
	return fmt.Sprintf("%s %.6x", v, sum.Sum(nil))
})

func versionLine() string {
	return fmt.Sprintf("tacho %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersion(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: flagsOnly, Example: "  tacho version",
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(env.Stdout, versionLine())
			return err
		},
	}
}
