package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/report"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/workload"
)

// fewExamples is the number of examples in the short help.
const fewExamples = 4

const (
	helpAllFlag = "help-all"
	ownFlags    = "Flags" // group of flags that are not options of a plan
	groupNote   = "group" // annotation with the group of an option
	ownNote     = "own"
)

// commonFlags are the most used flags of commands with all options of a plan. --help
// shows these flags, --help-all shows all.
var commonFlags = map[string]string{
	"bench": "plan dry-run base-url backend model api-key-file sim num-prompts request-rate max-concurrency max-seconds seed " +
		"workload dataset-name dataset-path random-input-len random-output-len goodput metric-percentiles fail-if save-result",
	"predict": "engine replicas balance plan dry-run num-prompts request-rate max-concurrency max-seconds seed " +
		"dataset-name dataset-path random-input-len random-output-len goodput metric-percentiles fail-if",
	"find": "slo find from to within budget plan dry-run base-url backend model api-key-file sim num-prompts max-concurrency seed " +
		"dataset-name dataset-path random-input-len random-output-len",
	"sweep": "serve-cmd serve-param serve-shell plan dry-run backend model num-prompts request-rate max-concurrency max-seconds seed " +
		"dataset-name dataset-path random-input-len random-output-len fail-if",
	"init": "force base-url backend model api-key-file num-prompts request-rate max-concurrency max-seconds dataset-name dataset-path random-input-len random-output-len",
	"data": "samples block-size write plan tokenizer num-prompts seed workload dataset-name dataset-path random-input-len random-output-len " +
		"random-prefix-len random-range-ratio turns trace-window",
}

// A helpPage is the help of a command.
type helpPage struct {
	name     string // including the program's name
	use      string
	short    string
	long     string
	examples []string // examples
	parts    []part
	more     []string // sentences at the end
}

// A part is a list of flags, or of values for flags.
type part struct {
	title string
	rows  []row
	brief bool // print names only
}

type row struct{ name, text string }

// helpPageOf returns the help of a command, short or complete.
func helpPageOf(cmd *cobra.Command, all bool) *helpPage {
	s := &helpPage{name: cmd.CommandPath(), use: cmd.UseLine(), short: cmd.Short, parts: flagParts(cmd, all)}
	if strings.Contains(cmd.Use, "flags") {
		s.use = strings.TrimSuffix(s.use, " [flags]") // redundant
	}
	for line := range strings.Lines(cmd.Example) {
		if all || len(s.examples) < fewExamples {
			s.examples = append(s.examples, strings.TrimSpace(line))
		}
	}
	for _, p := range append(commandPart(cmd), kindParts(cmd.Name(), s.parts)...) {
		p.brief = p.brief && !all
		s.parts = append(s.parts, p)
	}
	if all {
		s.long = cmp.Or(cmd.Long, cmd.Short+".")
		s.parts = append(s.parts, exitPart())
		s.more = []string{environmentDoc}
		return s
	}
	s.more = []string{fmt.Sprintf("More flags, details, variables and exit codes: %s --%s", s.name, helpAllFlag)}
	return s
}

// flagParts returns the flags of a command by group.
func flagParts(cmd *cobra.Command, all bool) []part {
	cmd.InitDefaultHelpFlag() // also merges flags of the parents
	chosen := strings.Fields(commonFlags[cmd.Name()])
	parts := []part{{title: ownFlags}} // flags of the command first
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || !all && (len(chosen) > 0 && !slices.Contains(chosen, f.Name) || f.Name == "help" || f.Name == helpAllFlag) {
			return
		}
		group := cmp.Or(noted(f, groupNote), ownFlags)
		at := slices.IndexFunc(parts, func(p part) bool { return p.title == group })
		if at < 0 {
			at, parts = len(parts), append(parts, part{title: group})
		}
		parts[at].rows = append(parts[at].rows, flagRow(f, all))
	})
	return slices.DeleteFunc(parts, func(p part) bool { return len(p.rows) == 0 })
}

// noted returns an annotation of a flag.
func noted(f *pflag.Flag, key string) string { return strings.Join(f.Annotations[key], "") }

// flagRow describes a flag with the first clause of its help, or all of it.
func flagRow(f *pflag.Flag, all bool) row {
	r := row{"--" + f.Name, f.Usage}
	if name := valueName(f); name != "" {
		r.name += " " + name
	}
	if !all {
		r.text = firstClause(r.text)
	}
	if all && noted(f, ownNote) != "" {
		r.name = "+ " + r.name
	}
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" && f.DefValue != "0s" {
		standard := f.DefValue
		if d, err := time.ParseDuration(standard); err == nil && f.Value.Type() == "duration" {
			standard = shortDuration(d)
		}
		r.text += " (default " + standard + ")"
	}
	return r
}

// firstClause returns the text before the first semicolon outside parentheses.
func firstClause(text string) string {
	open := 0
	for i, c := range text {
		switch c {
		case '(':
			open++
		case ')':
			open--
		case ';':
			if open == 0 {
				return text[:i]
			}
		}
	}
	return text
}

// valueName returns the placeholder for a flag's value, or nothing for a
// switch.
func valueName(f *pflag.Flag) string {
	if f.NoOptDefVal != "" {
		return ""
	}
	kind := f.Value.Type()
	if o, ok := f.Value.(*option); ok {
		kind = strings.TrimLeft(fmt.Sprintf("%T", o.Value), "*")
	}
	switch {
	case strings.HasSuffix(f.Name, "-url"):
		return "URL"
	case strings.HasSuffix(f.Name, "-dir"), strings.HasSuffix(f.Name, "-path"), strings.HasSuffix(f.Name, "-file"):
		return "PATH"
	}
	switch kind {
	case "int", "uint64", "uint":
		return "N"
	case "float64":
		return "X"
	case "plan.Seconds":
		return "SECONDS"
	case "duration":
		return "TIME"
	case "plan.JSONObject":
		return "JSON"
	}
	return "VALUE"
}

// commandPart returns the subcommands of a command.
func commandPart(cmd *cobra.Command) []part {
	p := part{title: "Commands"}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			p.rows = append(p.rows, row{c.Name(), c.Short})
		}
	}
	if len(p.rows) == 0 {
		return nil
	}
	return []part{p}
}

// kindParts returns the values of flags shown in the help.
func kindParts(command string, flags []part) (out []part) {
	kinds := func(title string, rows []row) part { return part{title, rows, true} }
	for _, list := range []struct {
		flag string
		kind part
	}{{"--backend ", kinds("Backends", backendRows())}, {"--dataset-name ", kinds("Datasets", datasetRows())}} {
		names := func(r row) bool { return strings.HasPrefix(r.name, list.flag) }
		if slices.ContainsFunc(flags, func(p part) bool { return slices.ContainsFunc(p.rows, names) }) {
			out = append(out, list.kind)
		}
	}
	switch command {
	case "sim":
		return []part{kinds("Faults", faultRows())}
	case "report":
		var results, styles []row
		for _, k := range archive.Kinds {
			results = append(results, row{k.Name, k.Doc})
		}
		for _, s := range report.Styles {
			styles = append(styles, row{s.String(), s.Doc})
		}
		return []part{
			kinds("Formats", formatRows(report.Formats)), kinds("Formats for a result of another tool", formatRows(report.FileFormats)),
			kinds("Report styles", styles), kinds("Supported results", results),
		}
	case "compare":
		return []part{kinds("Formats", formatRows(report.ComparisonFormats))}
	}
	return out
}

func backendRows() (out []row) {
	for _, k := range backend.Kinds {
		out = append(out, row{k.Name, k.Doc})
	}
	return out
}

func datasetRows() (out []row) {
	for _, k := range workload.Kinds {
		out = append(out, row{k.Name, k.Doc})
	}
	return out
}

func faultRows() (out []row) {
	for _, k := range sim.FaultKinds {
		out = append(out, row{k.Name + k.Args, k.About})
	}
	return out
}

func formatRows[T any](formats []report.FormatOf[T]) (out []row) {
	for _, f := range formats {
		out = append(out, row{f.Name, f.Doc})
	}
	return out
}

// helpCommand returns the help command: tacho help bench.
func helpCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Print the help of a command", Example: "  tacho help bench",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			names := func() []row { return commandPart(cmd.Root())[0].rows }
			return fromList(names, false)(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usage(unknownCommand(cmd.Root(), args[0]))
			}
			return showHelp(env, about)
		},
	}
}

// showHelp prints the help of a command at the width of the terminal.
func showHelp(env *Env, cmd *cobra.Command) error {
	all := cmd.Flags().Changed(helpAllFlag)
	_, err := fmt.Fprint(env.Stdout, helpPageOf(cmd, all).text(helpWidth(env)))
	return err
}

// helpWidth returns the width of help. It is limited, because long lines are
// hard to read.
func helpWidth(env *Env) int {
	if env.Width == nil {
		return 80
	}
	return max(40, min(env.Width(), 120))
}
