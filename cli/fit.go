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

	"tacho/archive"
	"tacho/bench"
	"tacho/internal/wholefile"
	"tacho/outcome"
	"tacho/predict"
	"tacho/sim/step"
)

// fitOptions are the words of the command.
type fitOptions struct {
	out, start, name string
	check, quick     bool
	budget           time.Duration
}

func newFit(env *Env) *cobra.Command {
	var o fitOptions
	cmd := &cobra.Command{
		Use:   "fit RUN...",
		Short: "Make a model of an engine from runs that were measured, for tacho predict",
		Long: `fit finds the engine that explains what was measured: what a step costs, how its
batch is made up, what stands before and behind it. RUN is a run directory, or a
result that "tacho report" reads; several of one server tell more than one.

Costs are read off the times of the tokens first. Then the same requests are
simulated, and structure and numbers are changed until the simulation does what
the server did. Each run is then foretold by a fit to the others: that error, not
how well the model fits, is what to expect of a prediction.

What it prints names the fields that the runs do not identify, which have their
start values, and the runs that would tell most. Ranges of tacho predict include
the error of the runs that were held out. -o keeps the model; "tacho
predict --engine FILE" and "tacho sim --profile FILE" take it.

--check fits nothing: it holds a profile (--start) against runs. Without runs it
holds the profiles that tacho carries against the reports they were made from.`,
		Example: `  tacho fit runs/20260301-120000-burst runs/20260301-121000-closed -o my-engine.yaml
  tacho predict --engine my-engine.yaml --request-rate 5,10,20 --num-prompts 500
  tacho fit --check --start my-engine.yaml runs/20260302-120000-open
  tacho fit --check`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := o.run(cmd.Context(), env, args)
			if errors.Is(err, context.Canceled) {
				return &exitError{stopCode(cmd.Context()), errors.New("stopped before it was done")}
			}
			return err
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.out, "output", "o", "", "file for the model; it ends in .yaml")
	fs.StringVar(&o.start, "start", "", "profile to start from, whose structure is kept: a name from tacho sim --list, or a file (default: found from the runs)")
	fs.StringVar(&o.name, "name", "", "name of the model (default: that of the file)")
	fs.BoolVar(&o.quick, "no-hold-out", false, "do not fit again without each run, which tells what error to expect")
	fs.BoolVar(&o.check, "check", false, "fit nothing: say how well the profile of --start explains the runs")
	fs.DurationVar(&o.budget, "budget", 5*time.Minute, "most time for all of it; what there was no time for is said")
	return cmd
}

func (o *fitOptions) run(ctx context.Context, env *Env, paths []string) error {
	switch {
	case o.check && len(paths) == 0:
		_, _ = fmt.Fprintln(env.Stderr, "Computing every level of the four reports with its profile: some 20 s.") // for information
		return step.WriteFit(ctx, env.Stdout)
	case len(paths) == 0:
		return usage(errors.New("fit needs a run or a result; runs are kept in runs/ (tacho fit --check alone looks at tacho's own profiles)"))
	case o.check && o.start == "":
		return usage(errors.New("--check needs a profile: --start NAME, or a file"))
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
		return usage(fmt.Errorf("-o %s: a profile ends in .yaml", o.out))
	}
	if o.out != "" {
		if err := bench.Writable(filepath.Dir(o.out)); err != nil { // not after minutes
			return usage(fmt.Errorf("-o %s: %w", o.out, err))
		}
	}
	sets, err := openSets(paths)
	if err != nil {
		return err
	}
	if o.check {
		return checkProfile(ctx, env.Stdout, start, sets)
	}
	began := time.Now()
	options := predict.Options{Budget: o.budget, Now: time.Now, NoHoldOut: o.quick}
	if env.Terminal {
		options.Say = func(line string) { _, _ = fmt.Fprintln(env.Stderr, line) } // for information
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
func openSets(paths []string) ([]predict.Set, error) {
	var sets []predict.Set
	for _, word := range paths {
		path, err := findRun(word)
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
				return nil, usage(fmt.Errorf("%s was predicted, not measured: an engine fitted to it would be the one it came from", path))
			}
			for i := range r.Levels {
				if why := r.Levels[i].LacksRecords(); why != "" {
					return nil, fmt.Errorf("%s, level %d: %s", path, r.Levels[i].Index, why)
				}
			}
			set, err := predict.SeeAll(cmp.Or(r.Label, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))), r)
			if err != nil {
				return nil, err
			}
			sets = append(sets, set)
		}
	}
	return sets, nil
}

// keep writes the file that was asked for.
func (o *fitOptions) keep(env *Env, l *predict.Learned) error {
	if o.out == "" {
		return nil
	}
	b, err := l.Profile.Write(remarks(l))
	if err != nil {
		return err
	}
	if err := wholefile.Write(o.out, b); err != nil {
		return fmt.Errorf("keep the model: %w", err)
	}
	_, err = fmt.Fprintf(env.Stdout, "\nThe model is in %s: tacho predict --engine %s\n", o.out, o.out)
	return err
}

// remarks are the comments of a fitted profile.
func remarks(l *predict.Learned) map[string]string {
	out := map[string]string{}
	for _, k := range l.Knobs {
		if k.Told {
			out[k.Name] = fmt.Sprintf("+- %.2g %%", 100*k.Error)
		}
	}
	for _, u := range l.Unidentified {
		out[u.Name] = "not identified by the runs: " + u.Why
	}
	return out
}

// describe has the file of a model say what it was made from, and how far to trust it.
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
		p.About += fmt.Sprintf(" Levels that the fit had not seen (%s held out) are off by %s on average.", l.Folds, meansOff(l.HeldOut))
	}
}

// shownFigures are those of the tables.
var shownFigures = []int{predict.TTFT, predict.TTFT99, predict.TPOT, predict.ITL, predict.E2EL, predict.Throughput}

// meansOff are the errors of levels, in words.
func meansOff(levels []predict.Explained) string {
	var parts []string
	for _, f := range []int{predict.TTFT, predict.TPOT, predict.ITL, predict.Throughput} {
		if off, ok := predict.MeanOff(levels, f); ok {
			parts = append(parts, fmt.Sprintf("%s %.1f %%", predict.FigureNames[f], 100*off))
		}
	}
	return strings.Join(parts, ", ")
}

func checkProfile(ctx context.Context, w io.Writer, p *step.Profile, sets []predict.Set) error {
	var levels []*predict.Seen
	for _, s := range sets {
		levels = append(levels, s.Levels...)
	}
	got, err := predict.Explain(ctx, *p, levels)
	if err != nil {
		return err
	}
	return writeLevels(w, fmt.Sprintf("%s beside what was measured: measured, and how far the model is off", p.Name), got)
}

// write says what was found.
func (o *fitOptions) write(w io.Writer, l *predict.Learned, took time.Duration) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s. It took %.0f s.\n", l.Profile.About, sentence(predict.Structure(&l.Profile)), took.Seconds())
	for _, s := range l.LeftOut {
		fmt.Fprintf(&b, "Left out: %s.\n", s)
	}
	if len(l.Cut) > 0 {
		fmt.Fprintf(&b, "The time was up (--budget %s). Not done: %s.\n", o.budget, strings.Join(l.Cut, "; "))
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
	if err := writeLevels(w, "As the fit has them: measured, and how far the model is off", l.Levels); err != nil {
		return err
	}
	if err := o.writeHeldOut(w, l); err != nil {
		return err
	}
	return writeAdvice(w, l.Advice)
}

func (o *fitOptions) writeHeldOut(w io.Writer, l *predict.Learned) error {
	if l.Folds != "" {
		return writeLevels(w, "Held out ("+l.Folds+"): what a prediction is off by", l.HeldOut)
	}
	next := "measure a second run"
	switch {
	case o.quick:
		next = "leave --no-hold-out away"
	case len(l.Cut) > 0:
		next = "give it more time with --budget"
	}
	_, err := fmt.Fprintf(w, "\nNothing was held out, so nobody knows what error to expect of a prediction: %s.\n", next)
	return err
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func writeKnobs(b *strings.Builder, title string, l *predict.Learned) {
	first := true
	for _, k := range l.Knobs {
		if !k.Told {
			continue
		}
		if first {
			fmt.Fprintf(b, "\n%s:\n", title)
			first = false
		}
		fmt.Fprintf(b, "  %-38s %8.4g %s +- %.2g %%\n", k.Name, k.Value, k.Unit, 100*k.Error)
	}
}

// writeUnidentified lists the fields that have their start value, or are near it.
func writeUnidentified(b *strings.Builder, all []predict.Unidentified) {
	if len(all) > 0 {
		b.WriteString("\nNot identified by these runs (start values, or near them):\n")
	}
	for _, u := range all {
		fmt.Fprintf(b, "  %-38s %11s  %s\n", u.Name, u.Value, u.Why)
	}
}

func writeLevels(w io.Writer, title string, levels []predict.Explained) error {
	if _, err := fmt.Fprintf(w, "\n%s:\n", title); err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := []string{"level", "requests"}
	for _, f := range shownFigures {
		head = append(head, predict.FigureNames[f], "")
	}
	line := func(cells []string) { _, _ = fmt.Fprintln(tw, strings.Join(cells, "\t")+"\t") } // Flush tells
	line(head)
	for i := range levels {
		e := &levels[i]
		cells := []string{e.Name, fmt.Sprint(e.Requests)}
		off := e.Predicted.Off(e.Measured)
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
		if off, ok := predict.MeanOff(levels, f); ok {
			cell = fmt.Sprintf("%.1f %%", 100*off)
		}
		cells = append(cells, "", cell)
	}
	line(cells)
	return tw.Flush()
}

func writeAdvice(w io.Writer, advice []predict.Advised) error {
	if len(advice) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("\nRuns that would tell most more, the best first:\n")
	for _, a := range advice {
		fmt.Fprintf(&b, "  tacho bench %s\n", a.Flags)
		if len(a.Tells) > 0 {
			fmt.Fprintf(&b, "      for %s\n", strings.Join(a.Tells, ", "))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
