package cli

import (
	"fmt"
	"regexp"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/internal/bench"
)

// released matches the version of a build from a tagged commit without local changes.
var released = regexp.MustCompile(`^v\d+\.\d+\.\d+(-rc\.\d+)?( |$)`)

func versionLine() string {
	version := bench.Version()
	if !released.MatchString(version) {
		version += " (untagged build)"
	}
	return fmt.Sprintf("tacho %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
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
