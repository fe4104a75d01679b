package cli

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/termtext"
	"github.com/tacho-bench/tacho/report"
)

const (
	helpAllFlag = "help-all"
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
	"init": "force base-url backend model api-key-file num-prompts request-rate max-concurrency max-seconds dataset-name dataset-path " +
		"random-input-len random-output-len",
	"data": "samples block-size write plan tokenizer num-prompts seed workload dataset-name dataset-path random-input-len random-output-len " +
		"random-prefix-len random-range-ratio turns trace-window",
}

// A part is a list of flags, of values for flags, or of commands.
type part struct {
	title string
	rows  []row
	brief bool // print names only
}

type row struct{ name, text string }

// showHelp prints the help of a command at the width of the terminal, but at most 120 cells wide, because
// longer lines are hard to read.
func showHelp(env *Env, cmd *cobra.Command) error {
	width := 80
	if env.Width != nil {
		width = max(40, min(env.Width(), 120))
	}
	_, err := fmt.Fprint(env.Stdout, helpText(cmd, cmd.Flags().Changed(helpAllFlag), width))
	return err
}

// helpText is the help of a command, short or complete. Examples come first, because most people look for a
// similar one.
func helpText(cmd *cobra.Command, all bool, width int) string {
	var b strings.Builder
	b.WriteString(wrapped(cmd.Short, width))
	examples := strings.Split(strings.TrimSpace(cmd.Example), "\n")
	if !all {
		examples = examples[:min(len(examples), 4)]
	}
	if cmd.Example != "" {
		b.WriteString("\nExamples:\n")
		for _, line := range examples {
			b.WriteString(wrapCommand(strings.TrimSpace(line), width))
		}
	}
	use := cmd.UseLine()
	if strings.Contains(cmd.Use, "flags") {
		use = strings.TrimSuffix(use, " [flags]") // redundant
	}
	b.WriteString("\nUsage:\n" + wrapped("  "+use, width))
	parts := slices.Concat(flagParts(cmd, all), commandPart(cmd), valueParts(cmd, all))
	last := "More flags, details, variables and exit codes: " + cmd.CommandPath() + " --" + helpAllFlag
	if all {
		b.WriteString("\n" + wrapped(cmp.Or(cmd.Long, cmd.Short+"."), width))
		parts, last = append(parts, exitPart()), environmentDoc
	}
	column := 0 // of the descriptions
	for _, p := range parts {
		for _, r := range p.rows {
			if n := len(r.name) + 4; n <= 32 && width >= 64 && !p.brief { // longer names have their description behind them
				column = max(column, n)
			}
		}
	}
	for _, p := range parts {
		b.WriteString("\n" + p.text(column, width))
	}
	return b.String() + "\n" + wrapped(last, width)
}

// text formats the part as a table with descriptions at a column, or as a list of names.
func (p *part) text(column, width int) string {
	var names []string
	lines := []string{p.title + ":"}
	for _, r := range p.rows {
		names = append(names, r.name)
		if !p.brief {
			head := fmt.Sprintf("  %-*s  ", column-4, r.name)
			lines = append(lines, termtext.Hang(head, r.text, strings.Repeat(" ", max(column, 6)), width)...)
		}
	}
	if p.brief {
		lines = append(lines, termtext.Hang("  ", strings.Join(names, ", "), "  ", width)...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// paragraph matches the end of a line that continues on the next one. Indented lines stay lines.
var paragraph = regexp.MustCompile(`([^\n])\n([^\s])`)

// wrapped wraps the paragraphs of a text at a width.
func wrapped(text string, width int) string {
	var out []string
	for line := range strings.SplitSeq(paragraph.ReplaceAllString(strings.TrimRight(text, "\n"), "$1 $2"), "\n") {
		words := strings.TrimLeft(line, " \t")
		indent := line[:len(line)-len(words)]
		out = append(out, termtext.Hang(indent, words, indent, width)...)
	}
	return strings.Join(out, "\n") + "\n"
}

// wrapCommand breaks a command before flags with backslashes, so that a shell
// can still read it.
func wrapCommand(command string, width int) string {
	var b strings.Builder
	line := "  "
	for _, piece := range pieces(command) {
		if len(line)+len(piece)+2 > width && strings.TrimSpace(line) != "" {
			b.WriteString(strings.TrimRight(line, " ") + " \\\n")
			line = "      "
		}
		line += piece + " "
	}
	return b.String() + strings.TrimRight(line, " ") + "\n"
}

// pieces splits a command into flags with their values. Quoted text is not
// split.
func pieces(command string) (out []string) {
	from, quote := 0, rune(0)
	for i, r := range command {
		switch {
		case quote == r:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case quote == 0 && r == ' ' && strings.HasPrefix(command[i+1:], "-"):
			out, from = append(out, command[from:i]), i+1
		}
	}
	return append(out, command[from:])
}

// flagParts returns the flags of a command by group.
func flagParts(cmd *cobra.Command, all bool) []part {
	cmd.InitDefaultHelpFlag()         // also merges flags of the parents
	parts := []part{{title: "Flags"}} // flags that are not options of a plan come first
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !isShown(cmd, f, all) {
			return
		}
		group := cmp.Or(noted(f, groupNote), parts[0].title)
		at := slices.IndexFunc(parts, func(p part) bool { return p.title == group })
		if at < 0 {
			at, parts = len(parts), append(parts, part{title: group})
		}
		parts[at].rows = append(parts[at].rows, flagRow(f, all))
	})
	return slices.DeleteFunc(parts, func(p part) bool { return len(p.rows) == 0 })
}

// isShown reports whether the help of a command has a flag.
func isShown(cmd *cobra.Command, f *pflag.Flag, all bool) bool {
	if f == nil || f.Hidden || all {
		return f != nil && !f.Hidden
	}
	chosen := strings.Fields(commonFlags[cmd.Name()])
	return (len(chosen) == 0 || slices.Contains(chosen, f.Name)) && f.Name != "help" && f.Name != helpAllFlag
}

// noted returns an annotation of a flag.
func noted(f *pflag.Flag, key string) string { return strings.Join(f.Annotations[key], "") }

// firstClause matches the text before the first semicolon outside parentheses.
var firstClause = regexp.MustCompile(`^(?:[^;(]|\([^)]*\))*`)

// flagRow describes a flag with the first clause of its help, or all of it.
func flagRow(f *pflag.Flag, all bool) row {
	r := row{"--" + f.Name, f.Usage}
	if f.NoOptDefVal == "" {
		r.name += " " + valueName(f)
	}
	if !all {
		r.text = firstClause.FindString(r.text)
	}
	if all && noted(f, ownNote) != "" {
		r.name = "+ " + r.name
	}
	if !slices.Contains([]string{"", "false", "[]", "0", "0s"}, f.DefValue) {
		standard := f.DefValue
		if d, err := time.ParseDuration(standard); err == nil && f.Value.Type() == "duration" {
			standard = shortDuration(d)
		}
		r.text += " (default " + standard + ")"
	}
	return r
}

// valueName returns the placeholder for a flag's value.
func valueName(f *pflag.Flag) string {
	kind := f.Value.Type()
	if o, ok := f.Value.(*option); ok {
		kind = strings.TrimLeft(fmt.Sprintf("%T", o.Value), "*")
	}
	switch name := f.Name[strings.LastIndexByte(f.Name, '-')+1:]; {
	case name == "url" && name != f.Name:
		return "URL"
	case slices.Contains([]string{"dir", "path", "file"}, name) && name != f.Name:
		return "PATH"
	}
	return cmp.Or(map[string]string{
		"int": "N", "uint64": "N", "uint": "N", "float64": "X", "plan.Seconds": "SECONDS", "duration": "TIME", "plan.JSONObject": "JSON",
	}[kind], "VALUE")
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

// valueParts lists the values of flags that the help shows.
func valueParts(cmd *cobra.Command, all bool) (out []part) {
	for _, list := range []struct{ flag, title string }{
		{"backend", "Backends"}, {"dataset-name", "Datasets"}, {"fault", "Faults"}, {"format", "Formats"}, {"report-style", "Report styles"},
	} {
		if f := cmd.Flags().Lookup(list.flag); isShown(cmd, f, all) {
			out = append(out, part{list.title, wordsOf(cmd.Name(), f)(), !all})
		}
	}
	if cmd.Name() == "report" {
		out = append(out, part{"Formats for a text report of vLLM", rowsOf(report.FileFormats, formatRow[report.File])(), !all},
			part{"Supported results", rowsOf(archive.Kinds, func(k archive.Kind) row { return row{k.Name, k.Doc} })(), !all})
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
			return fromList(func() []row { return commandPart(cmd.Root())[0].rows }, false)(cmd, args, typed)
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
