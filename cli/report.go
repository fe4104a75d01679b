package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tacho/archive"
	"tacho/bench"
	"tacho/internal/wholefile"
	"tacho/metric"
	"tacho/outcome"
	"tacho/plan"
	"tacho/report"
)

// reportOptions say how to print.
type reportOptions struct {
	gate                                               gate
	format, style, rows, metrics, percentiles, dialect string
	level                                              int
	detailed, verbose                                  bool
	stall, price                                       float64
	gpus                                               plan.GPUs
	orders                                             []string
}

func newReport(env *Env) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report RUN-DIRECTORY|RESULT|FOLDER ...",
		Short: "Print a run again, or anybody's result, in any layout or format",
		Long: `report prints runs that bench has kept, in any layout, whole or cut short; and
it reads the results of other tools, and prints them as if they were its own. A
folder of results is a sweep. Of several levels it prints a table, curves and what
they come to; --verbose prints each level whole. A text report of the "Serving
Benchmark Result" family alone is printed again byte for byte, or as JSON or CSV.`,
		Example: `  tacho report runs/20260301-120000-vllm
  tacho report runs/20260301-120000-vllm --report-style old --metric-percentiles 50,90,99
  tacho report report.txt --format csv
  tacho report results/ --format levels
  tacho report runs/20260301-120000-vllm --dialect aiperf
  tacho report runs/20260301-120000-vllm --report csv=levels.csv --report parquet=requests.parquet
  tacho report result.json --fail-if "ttft.p99>200ms,failures>1%"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("report needs a run directory or somebody's result; runs are kept in runs/")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			env.reads.Store(true)
			o.verbose = o.verbose || cmd.Flags().Changed("report-style")
			return o.print(env, args)
		},
	}
	cmd.Flags().StringVar(&o.format, "format", "", "how to print: see the list below (text for one level, curve for several)")
	cmd.Flags().BoolVar(&o.verbose, "verbose", false, "print each level whole, where there are several; so does --report-style")
	cmd.Flags().StringArrayVar(&o.orders, "report", nil, "write a file and print nothing, as FORMAT[:ROWS]=PATH; may be given several times")
	cmd.Flags().StringVar(&o.rows, "rows", "", "what a line of csv, jsonl and parquet is of: "+report.Names(report.RowKinds))
	cmd.Flags().IntVar(&o.level, "level", 0, "show only this level, counted from 1")
	cmd.Flags().BoolVar(&o.detailed, "save-detailed", false, "of the format vllm: with every request's numbers and text")
	cmd.Flags().StringVar(&o.style, "report-style", "current", "layout of the classic block: "+report.Names(report.Styles))
	cmd.Flags().StringVar(&o.metrics, "percentile-metrics", "", "latencies to show instead of the run's: any of "+strings.Join(metric.SectionKeys(), ", "))
	cmd.Flags().StringVar(&o.percentiles, "metric-percentiles", "", "percentiles to show instead of the run's, as 50,90,99.9")
	cmd.Flags().Float64Var(&o.stall, "stall-threshold", 0, "gaps between tokens beyond so many milliseconds are stalls, instead of the run's")
	cmd.Flags().Float64Var(&o.price, "gpu-price", 0, "price of one GPU for an hour, for the cost of a million tokens")
	cmd.Flags().TextVar(&o.gpus, "gpus", plan.GPUs{}, "what the server ran on, such as 8xMI300X, where the run does not say")
	cmd.Flags().StringVar(&o.dialect, "dialect", "", "print what another tool would say of the same requests: "+dialectNames())
	cmd.Flags().StringVar(&o.gate.conditions, "fail-if", "", "conditions that end with exit code 3, as ttft.p99>200ms,failures>1%,verdict>valid")
	o.gate.flags(cmd.Flags())
	return cmd
}

func dialectNames() string {
	var names []string
	for i := range metric.Dialects {
		names = append(names, metric.Dialects[i].Name)
	}
	return strings.Join(names, ", ")
}

// print shows runs together. A text report alone is printed again as it is,
// unless that format is one of runs only.
func (o *reportOptions) print(env *Env, paths []string) error {
	if err := o.check(); err != nil {
		return usage(err)
	}
	for i, word := range paths {
		var err error
		if paths[i], err = findRun(word); err != nil {
			return usage(err)
		}
	}
	if len(paths) == 1 && o.level == 0 && o.gate == (gate{}) && o.dialect == "" && len(o.orders) == 0 {
		if printed, err := o.printFile(env, paths[0]); printed || err != nil {
			return err
		}
	}
	format, err := report.FormatNamed(cmp.Or(o.format, report.Text))
	if err != nil && o.dialect == "" {
		return usage(err) // before anything is read
	}
	if err := knownWord("kind of row", cmp.Or(o.rows, report.RowKinds[0].Name), namesOf(report.RowKinds)); err != nil {
		return usage(err)
	}
	r := report.Report{Style: o.style, Rows: o.rows, Detailed: o.detailed}
	if r.Runs, err = o.read(paths); err != nil {
		return err
	}
	if err := o.show(env, &r, format); err != nil {
		return err
	}
	return o.gate.judge(env, r.Runs)
}

// read reads the runs, and of each what was asked for.
func (o *reportOptions) read(paths []string) (all []outcome.Run, err error) {
	for _, path := range paths {
		runs, err := archive.All(path, o.change)
		if err != nil {
			return nil, err
		}
		for i := range runs {
			if err := o.choose(&runs[i]); err != nil {
				return nil, usage(fmt.Errorf("%s: %w", path, err))
			}
		}
		all = append(all, runs...)
	}
	return all, nil
}

// show prints runs in the format asked for, and in the dialect.
func (o *reportOptions) show(env *Env, r *report.Report, format report.Format) error {
	if len(o.orders) > 0 {
		return o.write(env, r)
	}
	if o.dialect == "" && o.format == "" {
		return o.plainly(env, r)
	}
	if o.dialect == "" {
		return env.print(format, r)
	}
	dialect, err := metric.DialectNamed(o.dialect)
	if err != nil {
		return usage(fmt.Errorf("--dialect: %w", err))
	}
	translated, err := report.TranslationFormatNamed(cmp.Or(o.format, report.Text))
	if err != nil {
		return usage(err)
	}
	return translated.Render(env.Stdout, &report.Translation{Report: *r, Dialect: dialect})
}

// plainly prints runs as bench shows them.
func (o *reportOptions) plainly(env *Env, r *report.Report) error {
	levels := 0
	for i := range r.Runs {
		levels += len(r.Runs[i].Levels)
	}
	if !brief(levels > 1, o.verbose, false) {
		err := show(env.Stdout, report.Text, r)
		if levels == 1 && !o.verbose && err == nil {
			_, err = fmt.Fprintln(env.Stdout, strings.Join(report.Closing(&r.Runs[0]), "\n"))
		}
		return err
	}
	env.fit(r)
	if err := show(env.Stdout, report.Curve, r); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(env.Stderr, "Each level whole: --verbose") // for information
	return nil
}

// write makes the files that were ordered; one without a path is printed.
func (o *reportOptions) write(env *Env, r *report.Report) error {
	list, err := bench.Orders(o.orders)
	if err != nil || o.dialect != "" {
		return usage(cmp.Or(err, errors.New("--dialect is printed: leave --report out")))
	}
	for i := range list {
		if list[i].Rows == "" {
			list[i].Rows = o.rows
		}
		path := cmp.Or(list[i].Path, bench.StandardOutput)
		if err := deliver(env, r, &list[i], path); err != nil {
			return err
		}
		if path != bench.StandardOutput {
			_, _ = fmt.Fprintln(env.Stderr, "Report saved in "+path) // for information
		}
	}
	return nil
}

// choose leaves the level that was asked for.
func (o *reportOptions) choose(run *outcome.Run) error {
	if o.level == 0 {
		return nil
	}
	if o.level < 1 || o.level > len(run.Levels) {
		return fmt.Errorf("--level %d: there are %d levels", o.level, len(run.Levels))
	}
	run.Levels = run.Levels[o.level-1 : o.level]
	return nil
}

// printFile prints somebody's text report, if path is one and the format is one
// of those. Whatever else is wrong, who reads runs has the better words for it.
func (o *reportOptions) printFile(env *Env, path string) (bool, error) {
	format, unknown := report.FileFormatNamed(cmp.Or(o.format, report.Text))
	b, unread := wholefile.Read(path)
	f, other := report.Parse(string(b))
	if errors.Join(unknown, unread, other) != nil {
		return false, nil //nolint:nilerr // it is not a text report
	}
	for _, n := range f.Notes {
		_, _ = fmt.Fprintf(env.Stderr, "%s:%d: %s: %s\n", path, n.Line, n.Why, n.Text) // for information
	}
	return true, format.Render(env.Stdout, f)
}

// check says what is wrong with the options, before anything is read.
func (o *reportOptions) check() error {
	c := metric.DefaultConfig()
	if err := cmp.Or(o.change(&c), c.Validate(), report.CheckStyle(o.style)); err != nil {
		return err
	}
	_, err := o.gate.parse()
	return err
}

// change puts the options that are set in the place of the run's.
func (o *reportOptions) change(c *metric.Config) error {
	c.StallMillis, c.GPUPrice, c.GPUs = cmp.Or(o.stall, c.StallMillis), cmp.Or(o.price, c.GPUPrice), cmp.Or(float64(o.gpus.Count()), c.GPUs)
	if o.metrics != "" {
		c.Metrics = strings.Split(o.metrics, ",")
	}
	if o.percentiles == "" {
		return nil
	}
	c.Percentiles = nil
	for s := range strings.SplitSeq(o.percentiles, ",") {
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil {
			return usage(fmt.Errorf("--metric-percentiles: %q is not a number", s))
		}
		c.Percentiles = append(c.Percentiles, f)
	}
	return nil
}
