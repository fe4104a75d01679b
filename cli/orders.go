package cli

import (
	"tacho/bench"
	"tacho/report"
)

// deliver writes one report to its place.
func deliver(env *Env, r *report.Report, o *report.Order, path string) error {
	if path != bench.StandardOutput {
		return bench.Deliver(r, o, path)
	}
	one := *r
	one.Rows = o.Rows
	return env.print(o.Format, &one)
}
