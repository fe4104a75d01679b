package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tacho/archive"
	"tacho/compare"
	"tacho/metric"
	"tacho/outcome"
	"tacho/report"
)

// compareOptions say what is compared, and what must not be.
type compareOptions struct {
	format, quantities string
	unsure             bool
	alpha              float64
	gate               gate
}

func newCompare(env *Env) *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use:   "compare A B [C...]",
		Short: "Say how runs or results differ, and whether that is more than chance",
		Long: `compare holds runs against the first of them: A, B and the others are run
directories, results of other tools or folders, as "tacho report" reads them.
Levels are matched by their coordinates. Several runs of one setting (--repeat,
or a folder of runs) are the unit of the test. Single runs are compared in
stretches, because requests near each other resemble each other. If both runs sent
the same work (the same --seed), far smaller differences are found. A difference
that chance could have made is "~". If a result has no requests, there is a
difference and no test.

A name that is no file is looked for below runs/ and the working directory: the
beginning of a name will do.

--fail-if ends with exit code 3 if a condition holds of any but the first:
ttft.p99>+10% is a difference from the first, ttft.p99>200ms a limit. A difference
that the test calls "~" passes, unless --fail-unsure is given. A percentile without a
test of its own fails if all requests are surely beyond the limit. A difference with too
few requests for a test is not judged, which is exit code 5, unless
--allow-unjudged is given. Every condition prints a line,
and is a test case in the JUnit XML of --junit.`,
		Example: `  tacho compare runs/20260301-120000-vllm runs/20260302-120000-vllm
  tacho compare before.json after.json --fail-if "ttft.p99>+10%,request_throughput<-5%"
  tacho compare vllm.txt tgi.txt --format markdown
  tacho compare base/ change/ --quantities ttft.p50,ttft.p99,failures`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("compare needs two runs or results at least; runs are kept in runs/")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			env.reads.Store(true)
			return o.run(env, args)
		},
	}
	cmd.Flags().StringVar(&o.format, "format", "text", "how to print: see the list below")
	cmd.Flags().StringVar(&o.quantities, "quantities", strings.Join(compare.Quantities, ","), "what to compare")
	cmd.Flags().StringVar(&o.gate.conditions, "fail-if", "", "conditions that end with exit code 3, as ttft.p99>+10%,failures>1%")
	cmd.Flags().BoolVar(&o.unsure, "fail-unsure", false, `let --fail-if count differences that the test calls "~" too`)
	o.gate.flags(cmd.Flags())
	cmd.Flags().Float64Var(&o.alpha, "alpha", compare.DefaultAlpha, "how often equal runs may be called different")
	return cmd
}

// compareTwo compares as the command does that is given nothing else.
func compareTwo(env *Env, paths []string) error {
	if len(paths) != 2 {
		return usage(errors.New("--compare takes two runs or results (tacho compare takes more)"))
	}
	o := compareOptions{format: "text", quantities: strings.Join(compare.Quantities, ","), alpha: compare.DefaultAlpha}
	return o.run(env, paths)
}

func (o *compareOptions) run(env *Env, paths []string) error {
	format, err := report.ComparisonFormatNamed(o.format)
	if err != nil {
		return usage(err)
	}
	if !(o.alpha > 0 && o.alpha < 1) {
		return usage(fmt.Errorf("--alpha %v: write a share between 0 and 1, as 0.05", o.alpha))
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
		side, err := openSide(path)
		if err != nil {
			return err
		}
		sides = append(sides, *side)
	}
	c, err := compare.Compare(sides, compare.Options{Quantities: quantities, Alpha: o.alpha})
	if err != nil {
		return err
	}
	if err := format.Render(env.Stdout, c); err != nil {
		return err
	}
	return o.gate.end(env, c.Judge(conditions, o.unsure))
}

// parseQuantities are those asked for, and those that conditions are about.
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

// openSide reads what a word names: a path, or the beginning of the name of
// something here or in runs.
func openSide(word string) (*compare.Side, error) {
	path, err := findRun(word)
	if err != nil {
		return nil, usage(err)
	}
	runs, err := archive.All(path, nil)
	if err != nil {
		return nil, err
	}
	return &compare.Side{Name: sideName(path, runs), Runs: runs}, nil
}

// sideName is what it is called, without the way there.
func sideName(path string, runs []outcome.Run) string {
	name := filepath.Base(filepath.Clean(path))
	if len(runs) == 1 && runs[0].Label != "" {
		name += " (" + runs[0].Label + ")"
	}
	return name
}

// findRun is the one file or directory that a word is the beginning of.
func findRun(word string) (string, error) {
	if _, err := os.Stat(word); !errors.Is(err, fs.ErrNotExist) {
		return word, err
	}
	var found []string
	for _, dir := range []string{"runs", "."} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // nothing is there
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), word) {
				found = append(found, filepath.Join(dir, e.Name()))
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("%s: there is no such file, and nothing here or in runs/ begins so", word)
	}
	return "", fmt.Errorf("%s is the beginning of %s: write more of it", word, strings.Join(found, " and "))
}
