package cli

import (
	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/report"
)

// writeReport writes one report to a file or to standard output.
func writeReport(env *Env, r *report.Report, o *report.Output, path string) error {
	if path != bench.StandardOutput {
		return bench.WriteReport(r, o, path)
	}
	one := *r
	one.Rows = o.Rows
	return env.print(o.Format, &one)
}
