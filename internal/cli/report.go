package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/report"
)

// reportOptions are the flags of report.
type reportOptions struct {
	gate                                                             gate
	format, style, rows, columns, slo, metrics, percentiles, dialect string
	level                                                            int
	detailed, verbose, styled                                        bool
	stall, price                                                     float64
	gpus                                                             plan.GPUs
	orders                                                           []string
}

func newReport(env *Env) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report [RUN-DIRECTORY|RESULT|FOLDER] ...",
		Short: "Print a stored run or a result file in any layout or format",
		Long: `report prints stored runs in any layout, complete or interrupted, by default the
newest run. last~1 is the run before it, and names may be abbreviated. It also reads
results of other tools and prints them in the same way. A folder of results is a
sweep. Several levels are printed as a table, curves and a conclusion; --verbose
prints the full report of each level. A single text report of the "Serving
Benchmark Result" family is printed byte for byte, or as JSON or CSV.`,
		Example: `  tacho report last
  tacho report last --format flat
  tacho report runs/20260301-120000-vllm --report-style old --metric-percentiles 50,90,99
  tacho report report.txt --format csv
  tacho report results/ --format levels
  tacho report runs/20260301-120000-vllm --dialect aiperf
  tacho report runs/20260301-120000-vllm --report csv=levels.csv --report parquet=requests.parquet
  tacho report result.json --fail-if "ttft.p99>200ms,failures>1%"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			env.reads.Store(true)
			o.styled = cmd.Flags().Changed("report-style")
			return o.print(env, args)
		},
	}
	cmd.Flags().StringVar(&o.format, "format", "", "output format, see the list below (default: text for one level, curve for several)")
	cmd.Flags().BoolVar(&o.verbose, "verbose", false, "print all details of each level")
	cmd.Flags().StringArrayVar(&o.orders, "report", nil, "write a file instead of printing, as FORMAT[:ROWS]=PATH; repeatable")
	cmd.Flags().StringVar(&o.rows, "rows", "", "rows of csv and parquet: "+report.Names(report.RowKinds))
	cmd.Flags().StringVar(&o.columns, "columns", report.ColumnsMain, "columns of csv and parquet for rows of levels: "+report.ColumnsMain+", "+report.ColumnsAll)
	cmd.Flags().IntVar(&o.level, "level", 0, "number of the level to show, from 1")
	cmd.Flags().BoolVar(&o.detailed, "save-detailed", false, "with --format vllm: include metrics and text of every request")
	cmd.Flags().StringVar(&o.style, "report-style", "current", "layout of the classic block: "+report.Names(report.Styles))
	cmd.Flags().StringVar(&o.metrics, "percentile-metrics", "", "latencies to show instead of the run's: "+strings.Join(metric.SectionKeys(), ", "))
	cmd.Flags().StringVar(&o.percentiles, "metric-percentiles", "", "percentiles to show instead of the run's, as 50,90,99.9")
	cmd.Flags().Float64Var(&o.stall, "stall-threshold", 0, "gap between tokens counted as a stall, in milliseconds (default: as in the run)")
	cmd.Flags().Float64Var(&o.price, "gpu-price", 0, "price per GPU hour, for the cost per million tokens")
	cmd.Flags().TextVar(&o.gpus, "gpus", plan.GPUs{}, "GPUs of the server, such as 8xMI300X, if the run does not contain them")
	cmd.Flags().StringVar(&o.dialect, "dialect", "", "print the report of another tool for the same requests: "+dialectNames())
	cmd.Flags().StringVar(&o.slo, "slo", "", "SLO of each level instead of the run's, as ttft:p99<500ms,error<0.1%")
	cmd.Flags().StringVar(&o.gate.conditions, "fail-if", "", "conditions for exit code 3, as ttft.p99>200ms,failures>1%,verdict>valid")
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

// print prints runs together. A single text report is printed unchanged, unless
// the format needs a run.
func (o *reportOptions) print(env *Env, paths []string) error {
	if err := o.check(); err != nil {
		return usage(err)
	}
	newest := len(paths) == 0
	paths, err := findRuns(env, paths)
	if err != nil {
		return err
	}
	if newest {
		_, _ = fmt.Fprintln(env.Stderr, "Newest run: "+paths[0]) // informational
	}
	if len(paths) == 1 && o.level == 0 && o.gate == (gate{}) && o.dialect == "" && len(o.orders) == 0 {
		if printed, err := o.printFile(env, paths[0]); printed || err != nil {
			return err
		}
	}
	format, err := report.FormatNamed(cmp.Or(o.format, report.Text))
	if err != nil && o.dialect == "" {
		return usage(err) // before reading anything
	}
	if err := knownWord("kind of row", cmp.Or(o.rows, report.RowKinds[0].Name), namesOf(report.RowKinds)); err != nil {
		return usage(err)
	}
	r := report.Report{Style: o.style, Rows: o.rows, Columns: o.columns, Detailed: o.detailed, Brief: o.format == "" && !o.verbose, Wrap: env.wrapAt()}
	if r.Runs, err = o.read(paths); err != nil {
		return err
	}
	if err := o.show(env, &r, format); err != nil {
		return err
	}
	return o.gate.judge(env, r.Runs)
}

// read reads the runs and selects the requested levels.
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

// show prints runs in the selected format and dialect.
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

// plainly prints runs like bench.
func (o *reportOptions) plainly(env *Env, r *report.Report) error {
	levels := 0
	for i := range r.Runs {
		levels += len(r.Runs[i].Levels)
	}
	env.fit(r)
	if !brief(levels > 1, o.verbose, o.styled) {
		err := report.Write(env.Stdout, report.Text, r)
		if err == nil && r.Brief {
			_, _ = fmt.Fprintln(env.Stderr, "All details: --verbose") // informational
		}
		return err
	}
	if err := report.Write(env.Stdout, report.Curve, r); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(env.Stderr, "Full report of each level: --verbose. Only the blocks of vllm bench serve: --format classic") // informational
	return nil
}

// write writes the files of --report; reports without a path are printed.
func (o *reportOptions) write(env *Env, r *report.Report) error {
	list, err := bench.Outputs(o.orders)
	if err != nil || o.dialect != "" {
		return usage(cmp.Or(err, errors.New("--dialect cannot be combined with --report")))
	}
	for i := range list {
		if list[i].Rows == "" {
			list[i].Rows = o.rows
		}
		path := cmp.Or(list[i].Path, bench.StandardOutput)
		if err := bench.WriteReport(r, &list[i], path, env.print); err != nil {
			return err
		}
		if path != bench.StandardOutput {
			_, _ = fmt.Fprintln(env.Stderr, "Report saved in "+path) // informational
		}
	}
	return nil
}

// choose selects the level of --level.
func (o *reportOptions) choose(run *outcome.Run) error {
	if o.level == 0 {
		return nil
	}
	if o.level < 1 || o.level > len(run.Levels) {
		return fmt.Errorf("--level %d: the run has %d levels", o.level, len(run.Levels))
	}
	run.Levels = run.Levels[o.level-1 : o.level]
	return nil
}

// printFile prints a text report of another tool, if path is one and the format
// supports it. Other errors are left to the reader of runs, which has better
// messages.
func (o *reportOptions) printFile(env *Env, path string) (bool, error) {
	format, unknown := report.FileFormatNamed(cmp.Or(o.format, report.Text))
	b, unread := atomicfile.Read(path)
	f, other := report.Parse(string(b))
	if errors.Join(unknown, unread, other) != nil {
		return false, nil //nolint:nilerr // it is not a text report
	}
	for _, n := range f.Notes {
		_, _ = fmt.Fprintf(env.Stderr, "%s:%d: %s: %s\n", path, n.Line, n.Why, n.Text) // informational
	}
	return true, format.Render(env.Stdout, f)
}

// check validates the options before anything is read.
func (o *reportOptions) check() error {
	c := metric.DefaultConfig()
	if err := cmp.Or(o.change(&c), c.Validate(), report.CheckStyle(o.style), o.checkTables()); err != nil {
		return err
	}
	_, err := o.gate.parse()
	return err
}

// checkTables refuses flags of tables if no table is printed.
func (o *reportOptions) checkTables() error {
	columns := []string{report.ColumnsMain, report.ColumnsAll}
	if err := knownWord("--columns", cmp.Or(o.columns, report.ColumnsMain), columns); err != nil {
		return err
	}
	level := report.RowKinds[0].Name
	tables := len(o.orders) > 0 || o.format == "csv" || o.format == "parquet"
	switch all := o.columns == report.ColumnsAll; {
	case o.rows != "" && !tables:
		return errors.New("--rows applies to tables: add --format csv")
	case all && !tables:
		return errors.New("--columns all applies to tables: add --format csv")
	case all && cmp.Or(o.rows, level) != level:
		return fmt.Errorf("--columns all applies to rows of levels: rows by %s have all columns", o.rows)
	}
	return nil
}

// change overrides the settings of the run with the given options.
func (o *reportOptions) change(c *metric.Config) error {
	c.StallMillis, c.GPUPrice, c.GPUs = cmp.Or(o.stall, c.StallMillis), cmp.Or(o.price, c.GPUPrice), cmp.Or(float64(o.gpus.Count()), c.GPUs)
	c.SLO = cmp.Or(o.slo, c.SLO)
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
