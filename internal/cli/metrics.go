package cli

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/metric"
)

// threshold formats the limit of a rule, or nothing for an infinite limit.
func threshold(f float64) string {
	if math.IsInf(f, 1) {
		return "-"
	}
	return fmt.Sprint(f)
}

func newMetrics(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "metrics", Short: "Print all metric definitions, also of other tools, and all rules of the verdict", Args: flagsOnly,
		Example: "  tacho metrics",
		RunE: func(*cobra.Command, []string) error {
			out := &strings.Builder{}
			for _, m := range metric.All {
				fmt.Fprintf(out, "%-19s %-9s %s: %s\n", m.Name, m.Unit, m.Title, m.Doc)
			}
			fmt.Fprintf(out, "\nMetrics of a level:\n")
			for _, f := range metric.Figures {
				fmt.Fprintf(out, "%-19s %-9s %s: %s\n", f.Name, f.Unit, f.Title, f.Doc)
			}
			for i := range metric.Dialects {
				d := &metric.Dialects[i]
				fmt.Fprintf(out, "\nDialect %s, definitions of %s (tacho report RUN --dialect %s):\n", d.Name, d.Owner, d.Name)
				for _, m := range d.Metrics {
					fmt.Fprintf(out, "%-33s %-6s %s\n", m.Name, m.Unit, m.Doc)
				}
				for _, total := range d.Totals {
					fmt.Fprintf(out, "%-33s %-6s %s\n", total.Name, total.Unit, total.Doc)
				}
			}
			fmt.Fprintf(out, "\nRules of the verdict (thresholds of note, DEGRADED and INVALID):\n")
			for _, r := range metric.Rules {
				fmt.Fprintf(out, "%-18s %8v %8v %8v %-6s %s\n", r.Code, threshold(r.Note), threshold(r.Degraded), threshold(r.Invalid), r.Unit, r.Doc)
			}
			_, err := io.WriteString(env.Stdout, out.String())
			return err
		},
	}
}
