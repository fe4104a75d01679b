package cli

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/report"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/sim/step"
	"github.com/tacho-bench/tacho/store"
)

// asksForWords reports whether a shell runs this command to complete a word.
// Completions are registered only then, because cobra never frees them.
func asksForWords(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// completeWords registers completions for all flags with known values.
func completeWords(env *Env, cmd *cobra.Command) {
	runs := keptRuns(env)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		ask := completionOf(cmd.Name(), f, runs)
		if ask == nil || f.Hidden {
			return
		}
		_ = cmd.RegisterFlagCompletionFunc(f.Name, ask) // fails for missing flags and duplicates only
	})
	switch cmd.Name() {
	case "report", "compare", "fit", "open":
		cmd.ValidArgsFunction = runs
	case "baseline":
		cmd.ValidArgsFunction = completeBaseline(env, runs)
	case "ui", "man":
		cmd.ValidArgsFunction = directories
	}
}

// completionOf returns the completion of a flag's value, or nil to let the
// shell complete files.
func completionOf(command string, f *pflag.Flag, runs cobra.CompletionFunc) cobra.CompletionFunc {
	switch f.Name {
	case "resume", "replay", "compare", "plan":
		return runs
	case "runs-dir", "result-dir":
		return directories
	}
	if words := wordsOf(command, f); words != nil {
		goesOn := slices.Contains([]string{"goodput", "slo", "fail-if"}, f.Name) // followed by a limit
		return fromList(words, goesOn)
	}
	switch {
	case f.NoOptDefVal != "", strings.HasSuffix(f.Name, "-path"), strings.HasSuffix(f.Name, "-file"), strings.HasSuffix(f.Name, "-cert"), strings.HasSuffix(f.Name, "-key"),
		slices.Contains([]string{"tokenizer", "truth", "write"}, f.Name):
		return nil
	}
	return cobra.NoFileCompletions
}

// wordsOf returns the values of a flag with their descriptions.
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
			return nil // a switch of the server
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
	case "align":
		return func() []row { return bare(alignments) }
	case "find":
		return func() []row { return bare(findKinds()) }
	}
	if o, ok := f.Value.(*option); ok && len(o.Words()) > 0 {
		return func() []row { return bare(o.Words()) }
	}
	return nil
}

// formatsOf returns the formats of a command.
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

// namesOf returns the names of a list.
func namesOf[T fmt.Stringer](list []T) []string {
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = item.String()
	}
	return out
}

// fromList completes the last word of a comma-separated list. goesOn means that
// more text follows the word.
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
			name, _, _ := strings.Cut(r.name, ":") // name of a fault without its arguments
			if strings.HasPrefix(name, typed[at:]) && !slices.Contains(said, name) {
				out = append(out, cobra.CompletionWithDesc(typed[:at]+name, r.text))
			}
		}
		return out, directive
	}
}

// keptRuns completes run directories, newest first, and baselines. If none matches, the shell
// completes files.
func keptRuns(env *Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		dir := runsDir(env)
		if f := cmd.Flags().Lookup("runs-dir"); f != nil && f.Changed {
			dir = f.Value.String()
		}
		var out []cobra.Completion
		kept, _ := filepath.Glob(filepath.Join(dir, "*", store.ManifestFile)) // an invalid pattern matches nothing
		for _, path := range slices.Backward(kept) {
			if run := filepath.Dir(path); strings.HasPrefix(run, typed) || strings.HasPrefix(filepath.Base(run), typed) {
				out = append(out, run)
			}
		}
		known, _ := readBaselines(dir) // a damaged file has no names
		for _, name := range slices.Sorted(maps.Keys(known)) {
			if word := baselinePrefix + name; strings.HasPrefix(word, typed) {
				out = append(out, cobra.CompletionWithDesc(word, known[name]))
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
