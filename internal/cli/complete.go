package cli

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/internal/spelling"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/report"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/sim/step"
	"github.com/tacho-bench/tacho/store"
	"github.com/tacho-bench/tacho/workload"
)

// asksForWords reports whether a shell runs this command to complete a word.
// Completions are registered only then, because cobra never frees them.
func asksForWords(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// addCompletion adds cobra's command that prints the script of a shell.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // cobra has just added it
	}
	cmd.Short = "Print a script that completes commands, flags and values in a shell"
	cmd.Example = `  source <(tacho completion bash)
  tacho completion zsh > "${fpath[1]}/_tacho"
  tacho completion fish | source`
	var shells []string
	for _, c := range cmd.Commands() {
		shells = append(shells, c.Name())
		c.Args = usersOwn(c.Args)
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error { // without the name of a shell, which is a command
		if len(args) == 0 {
			return usage(fmt.Errorf("completion needs the name of a shell: %s", strings.Join(shells, ", ")))
		}
		return usage(spelling.Unknown("shell", args[0], shells))
	}
	cmd.Args = cobra.ArbitraryArgs
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
		return rowsOf(backend.Kinds, func(k backend.Kind) row { return row{k.Name, k.Doc} })
	case "dataset-name":
		return rowsOf(workload.Kinds, func(k workload.Kind) row { return row{k.Name, k.Doc} })
	case "sim", "profile", engineFlag:
		switch {
		case command == "sim" && f.Name == engineFlag:
			return bare(sim.Engines)
		case command != "sim" && f.Name == "profile":
			return nil // a switch of the server
		}
		return rowsOf(step.Names(), func(name string) row {
			p, err := step.Load(name)
			if err != nil {
				return row{name: name}
			}
			return row{name, p.Engine + ", " + p.Model}
		})
	case "fault":
		return rowsOf(sim.FaultKinds, func(k sim.FaultKind) row { return row{k.Name + k.Args, k.About} })
	case "format", "report":
		switch command {
		case "compare":
			return rowsOf(report.ComparisonFormats, formatRow[compare.Comparison])
		case "selfcheck":
			return bare(func() []string { return checkFormats })
		}
		return rowsOf(report.Formats, formatRow[report.Report])
	case "rows":
		return bare(func() []string { return namesOf(report.RowKinds) })
	case "report-style":
		return rowsOf(report.Styles, func(s report.Style) row { return row{s.String(), s.Doc} })
	case "dialect":
		return bare(func() []string { return strings.Split(dialectNames(), ", ") })
	case "percentile-metrics":
		return bare(metric.SectionKeys)
	case "goodput", "slo", "fail-if":
		return rowsOf(metric.All, func(m *metric.Metric) row { return row{m.Name, m.Title} })
	case "quantities":
		return bare(func() []string { return compare.Quantities })
	case "align":
		return bare(func() []string { return alignments })
	case "find":
		return bare(findKinds)
	}
	if o, ok := f.Value.(*option); ok && len(o.Words()) > 0 {
		return bare(o.Words)
	}
	return nil
}

func rowsOf[T any](list []T, of func(T) row) func() []row {
	return func() (out []row) {
		for _, item := range list {
			out = append(out, of(item))
		}
		return out
	}
}

func formatRow[T any](f report.FormatOf[T]) row { return row{f.Name, f.Doc} }

// bare returns words without descriptions.
func bare(words func() []string) func() []row {
	return func() []row { return rowsOf(words(), func(word string) row { return row{name: word} })() }
}

// namesOf returns the names of a list.
func namesOf[T fmt.Stringer](list []T) []string {
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = item.String()
	}
	return out
}

// knownWord returns an error if word is not in words.
func knownWord(what, word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return spelling.Unknown(what, word, words)
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
