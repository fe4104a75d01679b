package cli

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"tacho/metric"
)

// threshold is a limit of a rule; one that nothing passes is none.
func threshold(f float64) string {
	if math.IsInf(f, 1) {
		return "-"
	}
	return fmt.Sprint(f)
}

func newMetrics(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "metrics", Short: "Print every formula and every rule of the verdict", Args: flagsOnly,
		Example: "  tacho metrics",
		RunE: func(*cobra.Command, []string) error {
			for _, m := range metric.All {
				if _, err := fmt.Fprintf(env.Stdout, "%-19s %-9s %s: %s\n", m.Name, m.Unit, m.Title, m.Doc); err != nil {
					return err
				}
			}
			if _, err := fmt.Fprintf(env.Stdout, "\nOf a level as a whole:\n"); err != nil {
				return err
			}
			for _, f := range metric.Figures {
				if _, err := fmt.Fprintf(env.Stdout, "%-19s %-9s %s: %s\n", f.Name, f.Unit, f.Title, f.Doc); err != nil {
					return err
				}
			}
			if _, err := fmt.Fprintf(env.Stdout, "\nVerdict (note, DEGRADED and INVALID above):\n"); err != nil {
				return err
			}
			for _, r := range metric.Rules {
				if _, err := fmt.Fprintf(env.Stdout, "%-18s %8v %8v %8v %-6s %s\n", r.Code, threshold(r.Note), threshold(r.Degraded), threshold(r.Invalid), r.Unit, r.Doc); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
