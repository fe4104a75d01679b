package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tacho/archive"
	"tacho/backend"
	"tacho/report"
	"tacho/sim"
	"tacho/workload"
)

// fewExamples are as many as help shows in short.
const fewExamples = 4

const (
	helpAllFlag = "help-all"
	ownFlags    = "Flags" // the group of those that are no options of a plan
	groupNote   = "group" // what is written down with an option's flag
	ownNote     = "own"
)

// often are the flags that people use, of the commands that take all options of
// a plan: --help shows these, and --help-all the others too.
var often = map[string]string{
	"bench": "plan dry-run base-url backend model api-key-file sim num-prompts request-rate max-concurrency max-seconds seed " +
		"dataset-name dataset-path random-input-len random-output-len goodput metric-percentiles fail-if save-result",
	"predict": "engine replicas balance plan dry-run num-prompts request-rate max-concurrency max-seconds seed " +
		"dataset-name dataset-path random-input-len random-output-len goodput metric-percentiles fail-if",
	"find": "slo find from to within plan dry-run base-url backend model api-key-file sim num-prompts max-concurrency seed " +
		"dataset-name dataset-path random-input-len random-output-len",
	"sweep": "serve-cmd serve-param serve-shell plan dry-run backend model num-prompts request-rate max-concurrency max-seconds seed " +
		"dataset-name dataset-path random-input-len random-output-len fail-if",
	"init": "force base-url backend model api-key-file num-prompts request-rate max-concurrency max-seconds dataset-name dataset-path random-input-len random-output-len",
	"data": "samples block-size write plan tokenizer num-prompts seed dataset-name dataset-path random-input-len random-output-len " +
		"random-prefix-len random-range-ratio turns trace-window",
}

// A sheet is what there is to say of a command.
type sheet struct {
	name  string // with the program's
	use   string
	short string
	long  string
	tries []string // examples
	parts []part
	more  []string // sentences at the end
}

// A part is a list of flags, or of what they choose from.
type part struct {
	title string
	rows  []row
	brief bool // names alone will do
}

type row struct{ name, text string }

// sheetOf is what there is to say of a command: what people use, or all of it.
func sheetOf(cmd *cobra.Command, all bool) *sheet {
	s := &sheet{name: cmd.CommandPath(), use: cmd.UseLine(), short: cmd.Short, parts: flagParts(cmd, all)}
	if strings.Contains(cmd.Use, "flags") {
		s.use = strings.TrimSuffix(s.use, " [flags]") // said already
	}
	for line := range strings.Lines(cmd.Example) {
		if all || len(s.tries) < fewExamples {
			s.tries = append(s.tries, strings.TrimSpace(line))
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

// flagParts are the flags of a command by their group.
func flagParts(cmd *cobra.Command, all bool) []part {
	cmd.InitDefaultHelpFlag() // which takes in the flags of its parents
	chosen := strings.Fields(often[cmd.Name()])
	parts := []part{{title: ownFlags}} // the command's own come first
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

// noted is what is written down with a flag.
func noted(f *pflag.Flag, key string) string { return strings.Join(f.Annotations[key], "") }

// flagRow is a flag, with its meaning in one clause or in all of them.
func flagRow(f *pflag.Flag, all bool) row {
	r := row{"--" + f.Name, f.Usage}
	if name := valueName(f); name != "" {
		r.name += " " + name
	}
	if !all {
		r.text, _, _ = strings.Cut(r.text, "; ")
	}
	if all && noted(f, ownNote) != "" {
		r.name = "+ " + r.name
	}
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" && f.DefValue != "0s" {
		r.text += " (default " + f.DefValue + ")"
	}
	return r
}

// valueName is what stands for the value of a flag; nothing, for a switch.
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

// commandPart are the commands of a command, if it has any.
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

// kindParts are the kinds that the flags of a command choose from, of those that
// its help shows.
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
			kinds("Formats", formatRows(report.Formats)), kinds("Formats of a text report", formatRows(report.FileFormats)),
			kinds("Report styles", styles), kinds("Results that are read", results),
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

// helpCommand is the command that others' help is asked of: tacho help bench.
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

// showHelp prints the help of a command, as wide as the terminal.
func showHelp(env *Env, cmd *cobra.Command) error {
	all := cmd.Flags().Changed(helpAllFlag)
	_, err := fmt.Fprint(env.Stdout, sheetOf(cmd, all).text(helpWidth(env)))
	return err
}

// helpWidth is how wide help is written: lines that are very long are no help.
func helpWidth(env *Env) int {
	if env.Width == nil {
		return 80
	}
	return max(40, min(env.Width(), 120))
}
