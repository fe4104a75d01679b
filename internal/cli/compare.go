package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
)

// Values of --align.
const (
	alignLoad  = "load"
	alignOrder = "order"
)

var alignments = []string{alignLoad, alignOrder}

// compareOptions are the flags of compare.
type compareOptions struct {
	format, quantities string
	align              string
	unsure, verbose    bool
	alpha              float64
	gate               gate
}

func newCompare(env *Env) *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use:   "compare [A [B...]]",
		Short: "Compare runs or results and test differences for significance",
		Long: `compare compares runs with the first one: A, B and the others are run
directories, results of other tools or folders, as in "tacho report". One name is
compared with the run before it, and without names the newest run with the run
before it. Levels are matched by their coordinates. Several runs of one setting
(--repeat, or a folder of runs) are the unit of the test. Single runs are divided
into segments, because neighboring requests are correlated. If both runs sent the
same requests (same --seed), much smaller differences are significant. "~" marks a
difference within random variation. Results without requests have a difference but
no test. Of several levels, only the rows that differ are printed; --verbose prints
all.

A name can be abbreviated: compare searches the working directory and runs/. last
is the newest run, last~1 the run before it, and baseline:main the run that "tacho
baseline set main" named.

--fail-if exits with code 3 if a condition holds for any run but the first:
ttft.mean>+5% is a difference from the first, ttft.p99>200ms a limit. A difference
marked "~" passes, unless --fail-unsure is given. A percentile without its own
test fails if all requests are clearly beyond the limit. A difference without a
test is not judged in either direction, which is exit code 5, unless
--allow-unjudged is given. Every condition prints a line and is a test case in the JUnit XML of
--junit.`,
		Example: `  tacho compare last~1 last
  tacho compare runs/20260301-120000-vllm runs/20260302-120000-vllm
  tacho compare before.json after.json --fail-if "ttft.mean>+5%,failures>1%"
  tacho compare baseline:main last --fail-if "ttft.mean>+5%,tpot.mean>+5%"
  tacho compare vllm.txt tgi.txt --format markdown
  tacho compare base/ change/ --quantities ttft.p50,ttft.p99,failures`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			env.reads.Store(true)
			if len(args) == 0 {
				args = []string{lastRun}
			}
			if len(args) == 1 {
				before, err := runBefore(env, args[0])
				if err != nil {
					return usage(err)
				}
				args = []string{before, args[0]}
			}
			return o.run(env, args)
		},
	}
	cmd.Flags().StringVar(&o.format, "format", "text", "output format, see the list below")
	cmd.Flags().StringVar(&o.quantities, "quantities", strings.Join(compare.Quantities, ","), "metrics to compare")
	cmd.Flags().StringVar(&o.gate.conditions, "fail-if", "", "conditions for exit code 3, as ttft.mean>+5%,failures>1%")
	cmd.Flags().BoolVar(&o.unsure, "fail-unsure", false, `let --fail-if also count differences marked "~"`)
	cmd.Flags().BoolVar(&o.verbose, "verbose", false, "print all rows of several levels")
	o.gate.flags(cmd.Flags())
	cmd.Flags().StringVar(&o.align, "align", alignLoad, "levels to compare with each other: load (levels with the same load) or order (the first of each run, then the second, ...)")
	cmd.Flags().Float64Var(&o.alpha, "alpha", compare.DefaultAlpha, "significance level of the test")
	return cmd
}

// compareTwo compares two runs with default options.
func compareTwo(env *Env, paths []string) error {
	if len(paths) != 2 {
		return usage(errors.New("--compare needs two runs or results (tacho compare accepts more)"))
	}
	o := compareOptions{format: "text", align: alignLoad, quantities: strings.Join(compare.Quantities, ","), alpha: compare.DefaultAlpha}
	return o.run(env, paths)
}

func (o *compareOptions) run(env *Env, paths []string) error {
	format, err := report.ComparisonFormatNamed(o.format)
	if err != nil {
		return usage(err)
	}
	if err := knownWord("value of --align", o.align, alignments); err != nil {
		return usage(err)
	}
	if !(o.alpha > 0 && o.alpha < 1) {
		return usage(fmt.Errorf("--alpha %v: want a number between 0 and 1, as 0.05", o.alpha))
	}
	conditions, err := o.gate.parse()
	if err != nil {
		return err
	}
	quantities, err := o.parseQuantities(conditions)
	if err != nil {
		return usage(err)
	}
	var sides []compare.Side
	for _, path := range paths {
		side, err := openSide(env, path)
		if err != nil {
			return err
		}
		sides = append(sides, *side)
	}
	c, err := compare.Compare(sides, compare.Options{Quantities: quantities, Alpha: o.alpha, InOrder: o.align == alignOrder})
	if errors.Is(err, compare.ErrNoLevel) {
		return fmt.Errorf("%w; to compare different loads, add --align %s; tacho report %s prints all levels in one table", err, alignOrder, strings.Join(paths, " "))
	}
	if err != nil {
		return err
	}
	c.Wide, c.Verbose = env.wrapAt(), o.verbose
	if err := format.Render(env.Stdout, c); err != nil {
		return err
	}
	return o.gate.end(env, c.Judge(conditions, o.unsure), c.AnyInvalid())
}

// parseQuantities returns the metrics to compare and the metrics of all
// conditions.
func (o *compareOptions) parseQuantities(conditions []metric.Condition) ([]metric.Quantity, error) {
	var out []metric.Quantity
	for name := range strings.SplitSeq(o.quantities, ",") {
		q, err := metric.ParseQuantity(name)
		if err != nil {
			return nil, fmt.Errorf("--quantities: %w", err)
		}
		out = append(out, q)
	}
	for _, c := range conditions {
		if !slices.ContainsFunc(out, func(q metric.Quantity) bool { return q.Name == c.Name }) {
			out = append(out, c.Quantity)
		}
	}
	return out, nil
}

// openSide reads a run by its path, or by the start of its name.
func openSide(env *Env, word string) (*compare.Side, error) {
	path, err := findRun(env, word)
	if err != nil {
		return nil, usage(err)
	}
	runs, err := archive.All(path, nil)
	if err != nil {
		return nil, err
	}
	name := sideName(path, runs)
	if strings.HasPrefix(word, baselinePrefix) {
		name = word + " " + name
	}
	return &compare.Side{Name: name, Runs: runs}, nil
}

// sideName returns the display name of a run, without its directory.
func sideName(path string, runs []outcome.Run) string {
	name := filepath.Base(filepath.Clean(path))
	if len(runs) == 1 && !strings.HasSuffix(name, "-"+runs[0].Label) && runs[0].Label != "" {
		name += " (" + runs[0].Label + ")"
	}
	return name
}
