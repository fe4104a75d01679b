package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"tacho/bench"
)

func versionLine() string {
	return fmt.Sprintf("tacho %s %s %s/%s\n", bench.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
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
