package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tacho/compare"
	"tacho/metric"
	"tacho/plan"
	"tacho/report"
	"tacho/sim"
	"tacho/sim/step"
	"tacho/store"
)

// asksForWords says that a shell runs this to complete a word. Otherwise nobody
// asks, and cobra never lets go of what it was told of flags.
func asksForWords(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// completeWords hangs, behind every flag of a command that takes known words, what
// a shell asks for them.
func completeWords(env *Env, cmd *cobra.Command) {
	runs := keptRuns(env)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		ask := completionOf(cmd.Name(), f, runs)
		if ask == nil || f.Hidden {
			return
		}
		_ = cmd.RegisterFlagCompletionFunc(f.Name, ask) // fails for flags that there are not, and for two of one
	})
	switch cmd.Name() {
	case "report", "compare", "fit":
		cmd.ValidArgsFunction = runs
	case "ui", "man":
		cmd.ValidArgsFunction = directories
	}
}

// completionOf is what completes the value of a flag; nil leaves it to the shell,
// which knows files.
func completionOf(command string, f *pflag.Flag, runs cobra.CompletionFunc) cobra.CompletionFunc {
	switch f.Name {
	case "resume", "replay", "compare", "plan":
		return runs
	case "runs-dir", "result-dir":
		return directories
	}
	if words := wordsOf(command, f); words != nil {
		goesOn := slices.Contains([]string{"goodput", "slo", "fail-if"}, f.Name) // a limit follows
		return fromList(words, goesOn)
	}
	switch {
	case f.NoOptDefVal != "", strings.HasSuffix(f.Name, "-path"), strings.HasSuffix(f.Name, "-file"), strings.HasSuffix(f.Name, "-cert"), strings.HasSuffix(f.Name, "-key"),
		slices.Contains([]string{"tokenizer", "truth", "write"}, f.Name):
		return nil
	}
	return cobra.NoFileCompletions
}

// wordsOf are the words that a flag takes, each with what it is.
func wordsOf(command string, f *pflag.Flag) func() []row {
	switch f.Name {
	case "backend":
		return backendRows
	case "dataset-name":
		return datasetRows
	case "sim", "profile", engineFlag:
		if command == "sim" && f.Name == engineFlag {
			return func() []row { return bare(sim.Engines()) }
		}
		if f.Name == "profile" && command != "sim" {
			return nil // a switch of the server's
		}
		return profileRows
	case "fault":
		return faultRows
	case "format", "report":
		return formatsOf(command)
	case "rows":
		return func() []row { return bare(namesOf(report.RowKinds)) }
	case "report-style":
		return func() []row { return bare(strings.Split(report.Names(report.Styles), ", ")) }
	case "dialect":
		return func() []row { return bare(strings.Split(dialectNames(), ", ")) }
	case "percentile-metrics":
		return func() []row { return bare(metric.SectionKeys()) }
	case "goodput", "slo", "fail-if":
		return metricRows
	case "quantities":
		return func() []row { return bare(compare.Quantities) }
	case "find":
		return func() []row { return bare(findKinds()) }
	}
	if o, ok := f.Value.(*option); ok && len(o.Words()) > 0 {
		return func() []row { return bare(o.Words()) }
	}
	return nil
}

// formatsOf are the formats of a command.
func formatsOf(command string) func() []row {
	switch command {
	case "compare":
		return func() []row { return formatRows(report.ComparisonFormats) }
	case "selfcheck":
		return func() []row { return bare(checkFormats) }
	}
	return func() []row { return formatRows(report.Formats) }
}

func profileRows() (out []row) {
	for _, name := range step.Names() {
		if p, err := step.Load(name); err == nil {
			out = append(out, row{name, p.Engine + ", " + p.Model})
		}
	}
	return out
}

func metricRows() (out []row) {
	for _, m := range metric.All {
		out = append(out, row{m.Name, m.Title})
	}
	return out
}

func bare(words []string) (out []row) {
	for _, w := range words {
		out = append(out, row{name: w})
	}
	return out
}

// namesOf are the names of a list.
func namesOf[T fmt.Stringer](list []T) []string {
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = item.String()
	}
	return out
}

// fromList completes the last word of a list with commas; goesOn says that
// something follows the word.
func fromList(words func() []row, goesOn bool) cobra.CompletionFunc {
	directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	if goesOn {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		at := strings.LastIndexByte(typed, ',') + 1
		said := strings.Split(typed[:at], ",")
		var out []cobra.Completion
		for _, r := range words() {
			name, _, _ := strings.Cut(r.name, ":") // a fault's, without what it can be told
			if strings.HasPrefix(name, typed[at:]) && !slices.Contains(said, name) {
				out = append(out, cobra.CompletionWithDesc(typed[:at]+name, r.text))
			}
		}
		return out, directive
	}
}

// keptRuns completes the directories of runs, newest first, wherever runs are
// kept. Where none fits, the shell completes files.
func keptRuns(env *Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		dir := cmp.Or(env.Getenv(variable("runs-dir")), plan.Default().RunsDir)
		if f := cmd.Flags().Lookup("runs-dir"); f != nil && f.Changed {
			dir = f.Value.String()
		}
		var out []cobra.Completion
		kept, _ := filepath.Glob(filepath.Join(dir, "*", store.ManifestFile)) // a bad pattern finds nothing
		for _, path := range slices.Backward(kept) {
			if run := filepath.Dir(path); strings.HasPrefix(run, typed) || strings.HasPrefix(filepath.Base(run), typed) {
				out = append(out, run)
			}
		}
		if len(out) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

func directories(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}
