package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tacho/metric"
	"tacho/report"
)

// reportOptions say how to print.
type reportOptions struct {
	format, style, metrics, percentiles string
}

func newReport(env *Env) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report RUN-DIRECTORY|REPORT.txt ...",
		Short: "Print a run again, or read a text report, in any layout or format",
		Long: `report prints runs that bench has kept, in any layout, whole or cut short; and
it reads text reports of the "Serving Benchmark Result" family, whoever wrote
them, and prints them again byte for byte, or as JSON or CSV.`,
		Example: `  tacho report runs/20260301-120000-vllm
  tacho report runs/20260301-120000-vllm --report-style old --metric-percentiles 50,90,99
  tacho report report.txt --format csv`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("report needs a run directory or a text report; runs are kept in runs/"))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			for i, path := range args {
				if i > 0 {
					_, _ = fmt.Fprintln(env.Stdout) // the report tells if stdout is broken
				}
				if err := o.print(env, path); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&o.format, "format", "text", "text, classic, levels, json or csv")
	cmd.Flags().StringVar(&o.style, "report-style", "current", "layout of the classic block: "+report.StyleNames())
	cmd.Flags().StringVar(&o.metrics, "percentile-metrics", "", "latencies to show instead of the run's: any of ttft,tpot,itl,e2el,client_queue_time,e2el_including_client_queue")
	cmd.Flags().StringVar(&o.percentiles, "metric-percentiles", "", "percentiles to show instead of the run's, as 50,90,99.9")
	return cmd
}

func (o *reportOptions) print(env *Env, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return usage(err)
	}
	if info.IsDir() {
		r, err := readRun(path, o.change)
		if err != nil {
			return err
		}
		r.Style = o.style
		return show(env.Stdout, o.format, r)
	}
	return o.printFile(env, path)
}

// printFile prints somebody's text report.
func (o *reportOptions) printFile(env *Env, path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := report.Parse(string(b))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, n := range f.Notes {
		_, _ = fmt.Fprintf(env.Stderr, "%s:%d: %s: %s\n", path, n.Line, n.Why, n.Text) // for information
	}
	format, err := report.FileFormatNamed(o.format)
	if err != nil {
		return usage(err)
	}
	return format.Render(env.Stdout, f)
}

// change puts the options that are set in the place of the run's.
func (o *reportOptions) change(c *metric.Config) error {
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

// unmarshalStrict reads JSON that we wrote: an unknown field means that it was
// written by a version that knew more.
func unmarshalStrict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("written by another version of tacho? %w", err)
	}
	return nil
}
