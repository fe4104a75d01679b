package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/internal/predict"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/sim/step"
)

// fitOptions are the flags of fit.
type fitOptions struct {
	out, start, name string
	check, quick     bool
	budget           time.Duration
}

func newFit(env *Env) *cobra.Command {
	var o fitOptions
	cmd := &cobra.Command{
		Use:   "fit RUN...",
		Short: "Fit an engine model to measured runs, for tacho predict",
		Long: `fit finds the engine model that explains measured runs: the cost of a step, the
composition of the batch, and the stages before and after it. RUN is a run
directory, or a result that "tacho report" reads; several runs of one server
identify more parameters than one.

Initial costs come from token times. Then fit simulates the same requests and
changes structure and parameters until the simulation matches the measurements.
Finally each run is predicted by a fit to the other runs. The error of these
held-out runs, not of the fit, is the expected error of a prediction.

The output lists the parameters that the runs do not identify, which keep their
start values, and the runs that would identify most of them. Ranges of tacho
predict include the error of held-out runs. -o stores the model for "tacho predict
--engine FILE" and "tacho sim --profile FILE".

--check compares a profile (--start) with runs without fitting. Without runs it
compares the built-in profiles with the reports they were made from.`,
		Example: `  tacho fit runs/20260301-120000-burst runs/20260301-121000-closed -o my-engine.yaml
  tacho predict --engine my-engine.yaml --request-rate 5,10,20 --num-prompts 500
  tacho fit --check --start my-engine.yaml runs/20260302-120000-open
  tacho fit --check`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := o.run(cmd.Context(), env, args)
			if errors.Is(err, context.Canceled) {
				return &exitError{stopCode(cmd.Context()), errors.New("stopped before the fit was complete")}
			}
			return err
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.out, "output", "o", "", "output file (.yaml)")
	fs.StringVar(&o.start, "start", "", "start profile with a fixed structure: a name from tacho sim --list, or a file (default: found from the runs)")
	fs.StringVar(&o.name, "name", "", "name of the model (default: name of the file)")
	fs.BoolVar(&o.quick, "no-hold-out", false, "skip the fits without one run each, which estimate the prediction error")
	fs.BoolVar(&o.check, "check", false, "compare the profile of --start with the runs without fitting")
	fs.DurationVar(&o.budget, "budget", 5*time.Minute, "maximum time; the output lists skipped steps")
	return cmd
}

func (o *fitOptions) run(ctx context.Context, env *Env, paths []string) error {
	switch {
	case o.check && len(paths) == 0:
		_, _ = fmt.Fprintln(env.Stderr, "Computing all levels of the four reports with their profiles, about 20 s.") // informational
		return step.WriteFit(ctx, env.Stdout)
	case len(paths) == 0:
		return usage(errors.New("fit needs a run or a result; runs are stored in runs/ (tacho fit --check alone checks the built-in profiles)"))
	case o.check && o.start == "":
		return usage(errors.New("--check needs a profile, set --start to a name or a file"))
	}
	var start *step.Profile
	if o.start != "" {
		p, err := step.Load(o.start)
		if err != nil {
			return usage(err)
		}
		start = &p
	}
	if o.out != "" && filepath.Ext(o.out) != ".yaml" && filepath.Ext(o.out) != ".yml" {
		return usage(fmt.Errorf("-o %s: want a file name ending in .yaml", o.out))
	}
	if o.out != "" {
		if err := bench.WritableFile(o.out); err != nil { // before minutes of fitting
			return usage(fmt.Errorf("-o %s: %w", o.out, err))
		}
	}
	sets, err := openSets(env, paths)
	if err != nil {
		return err
	}
	if o.check {
		return checkProfile(ctx, env.Stdout, start, sets)
	}
	began := time.Now()
	options := predict.Options{Budget: o.budget, Now: time.Now, NoHoldOut: o.quick}
	if env.Terminal {
		options.Progress = func(line string) { _, _ = fmt.Fprintln(env.Stderr, line) } // informational
	}
	l, err := predict.Learn(ctx, start, sets, options)
	if err != nil {
		return err
	}
	l.Profile.Name = "fitted"
	if o.out != "" {
		l.Profile.Name = strings.TrimSuffix(filepath.Base(o.out), filepath.Ext(o.out))
	}
	if o.name != "" {
		l.Profile.Name = o.name
	}
	describe(l)
	if err := o.write(env.Stdout, l, time.Since(began)); err != nil {
		return err
	}
	return o.keep(env, l)
}

// openSets reads the levels of runs.
func openSets(env *Env, paths []string) ([]predict.Set, error) {
	var sets []predict.Set
	for _, word := range paths {
		path, err := findRun(env, word)
		if err != nil {
			return nil, usage(err)
		}
		runs, err := archive.All(path, nil)
		if err != nil {
			return nil, err
		}
		for i := range runs {
			r := &runs[i]
			if slices.ContainsFunc(r.Levels, func(l outcome.Level) bool { return l.Summary.Config.Predicted }) {
				return nil, usage(fmt.Errorf("%s is a prediction, fit needs a measured run", path))
			}
			for i := range r.Levels {
				if why := r.Levels[i].LacksRecords(); why != "" {
					return nil, fmt.Errorf("%s, %s: %s", path, cmp.Or(r.Levels[i].Name, "the only level"), why)
				}
			}
			set, err := predict.ReadLevels(cmp.Or(r.Label, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))), r)
			if err != nil {
				return nil, err
			}
			sets = append(sets, set)
		}
	}
	return sets, nil
}

// keep writes the file of -o.
func (o *fitOptions) keep(env *Env, l *predict.Learned) error {
	if o.out == "" {
		return nil
	}
	b, err := l.Profile.Write(remarks(l))
	if err != nil {
		return err
	}
	if err := atomicfile.Write(o.out, b); err != nil {
		return fmt.Errorf("write the model: %w", err)
	}
	_, err = fmt.Fprintf(env.Stdout, "\nModel saved in %s. Next, predict with it: tacho predict --engine %s\n", o.out, o.out)
	return err
}

// remarks returns the comments of a fitted profile.
func remarks(l *predict.Learned) map[string]string {
	out := map[string]string{}
	for _, k := range l.Parameters {
		if k.Identified {
			out[k.Name] = fmt.Sprintf("+- %.2g %%", 100*k.Error)
		}
	}
	for _, u := range l.Unidentified {
		out[u.Name] = "not identified by the runs: " + u.Why
	}
	return out
}

// describe adds the origin and the expected error to a model.
func describe(l *predict.Learned) {
	requests, levels := 0, 0
	names := make([]string, 0, len(l.Sets))
	for _, s := range l.Sets {
		names = append(names, s.Name)
		levels += len(s.Levels)
	}
	for _, e := range l.Levels {
		requests += e.Requests
	}
	p := &l.Profile
	p.About = fmt.Sprintf("Fitted by tacho fit to %d levels of %s, %d requests.", levels, strings.Join(names, ", "), requests)
	p.Source = "tacho fit " + strings.Join(names, " ")
	p.HeldOut = "nothing was held out"
	if l.Folds != "" {
		p.HeldOut = fmt.Sprintf("%s; %s held out", meansOff(l.HeldOut), l.Folds)
		p.About += fmt.Sprintf(" Average error of held-out levels (%s held out): %s.", l.Folds, meansOff(l.HeldOut))
	}
}

// shownFigures are the columns of the tables.
var shownFigures = []int{predict.TTFT, predict.TTFT99, predict.TPOT, predict.ITL, predict.E2EL, predict.Throughput}

// meansOff describes the errors of levels.
func meansOff(levels []predict.Comparison) string {
	var parts []string
	for _, f := range []int{predict.TTFT, predict.TPOT, predict.ITL, predict.Throughput} {
		if off, ok := predict.MeanError(levels, f); ok {
			parts = append(parts, fmt.Sprintf("%s %.1f %%", predict.FigureNames[f], 100*off))
		}
	}
	return strings.Join(parts, ", ")
}

func checkProfile(ctx context.Context, w io.Writer, p *step.Profile, sets []predict.Set) error {
	var levels []*predict.MeasuredLevel
	for _, s := range sets {
		levels = append(levels, s.Levels...)
	}
	got, err := predict.Compare(ctx, *p, levels)
	if err != nil {
		return err
	}
	return writeLevels(w, fmt.Sprintf("%s: measured values and model errors", p.Name), got)
}

// write prints the result of the fit.
func (o *fitOptions) write(w io.Writer, l *predict.Learned, took time.Duration) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s. Duration: %.0f s.\n", l.Profile.About, sentence(predict.Structure(&l.Profile)), took.Seconds())
	for _, s := range l.Excluded {
		fmt.Fprintf(&b, "Excluded: %s.\n", s)
	}
	if len(l.Skipped) > 0 {
		fmt.Fprintf(&b, "Time limit reached (--budget %s). Skipped: %s.\n", o.budget, strings.Join(l.Skipped, "; "))
	}
	tells := "Identified by the runs, with standard errors"
	if o.start != "" {
		tells = "Identified by the runs and the start profile, with standard errors"
	}
	writeKnobs(&b, tells, l)
	writeUnidentified(&b, l.Unidentified)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if err := writeLevels(w, "Fitted levels: measured values and model errors", l.Levels); err != nil {
		return err
	}
	if err := o.writeHeldOut(w, l); err != nil {
		return err
	}
	return writeAdvice(w, l.Advice)
}

func (o *fitOptions) writeHeldOut(w io.Writer, l *predict.Learned) error {
	if l.Folds != "" {
		return writeLevels(w, "Held out ("+l.Folds+"): prediction errors", l.HeldOut)
	}
	next := "measure a second run"
	switch {
	case o.quick:
		next = "remove --no-hold-out"
	case len(l.Skipped) > 0:
		next = "raise --budget"
	}
	_, err := fmt.Fprintf(w, "\nNo run was held out, so the prediction error is unknown; %s.\n", next)
	return err
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func writeKnobs(b *strings.Builder, title string, l *predict.Learned) {
	first := true
	for _, k := range l.Parameters {
		if !k.Identified {
			continue
		}
		if first {
			fmt.Fprintf(b, "\n%s:\n", title)
			first = false
		}
		fmt.Fprintf(b, "  %-38s %8.4g %s +- %.2g %%\n", k.Name, k.Value, k.Unit, 100*k.Error)
	}
}

// writeUnidentified lists parameters that kept their start value, or are near
// it.
func writeUnidentified(b *strings.Builder, all []predict.Unidentified) {
	if len(all) > 0 {
		b.WriteString("\nNot identified by these runs (start values, or near them):\n")
	}
	for _, u := range all {
		fmt.Fprintf(b, "  %-38s %11s  %s\n", u.Name, u.Value, u.Why)
	}
}

func writeLevels(w io.Writer, title string, levels []predict.Comparison) error {
	if _, err := fmt.Fprintf(w, "\n%s:\n", title); err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := []string{"level", "requests"}
	for _, f := range shownFigures {
		head = append(head, predict.FigureNames[f], "")
	}
	line := func(cells []string) { _, _ = fmt.Fprintln(tw, strings.Join(cells, "\t")+"\t") } // Flush returns the error
	line(head)
	for i := range levels {
		e := &levels[i]
		cells := []string{e.Name, fmt.Sprint(e.Requests)}
		off := e.Predicted.RelativeError(e.Measured)
		for _, f := range shownFigures {
			if math.IsNaN(off[f]) {
				cells = append(cells, "-", "")
				continue
			}
			cells = append(cells, fmt.Sprintf("%.4g", e.Measured[f]), fmt.Sprintf("%+.1f %%", 100*off[f]))
		}
		line(cells)
	}
	cells := []string{"mean size", ""}
	for _, f := range shownFigures {
		cell := ""
		if off, ok := predict.MeanError(levels, f); ok {
			cell = fmt.Sprintf("%.1f %%", 100*off)
		}
		cells = append(cells, "", cell)
	}
	line(cells)
	return tw.Flush()
}

func writeAdvice(w io.Writer, advice []predict.RecommendedRun) error {
	if len(advice) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("\nMost informative additional runs, the best first:\n")
	for _, a := range advice {
		fmt.Fprintf(&b, "  tacho bench %s\n", a.Flags)
		if len(a.Identifies) > 0 {
			fmt.Fprintf(&b, "      identifies %s\n", strings.Join(a.Identifies, ", "))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
