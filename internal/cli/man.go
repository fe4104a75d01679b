package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

func newMan(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write manual pages for all commands to a directory",
		Long: `man writes one page per command: tacho.1, tacho-bench.1 and so on, with the
content of --help-all. "man -l DIRECTORY/tacho-bench.1" shows a page. If the
directory is in the manual path, such as /usr/local/share/man/man1, "man
tacho-bench" finds it.`,
		Example: `  tacho man /usr/local/share/man/man1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("man needs one directory to write to, not %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			pages := manPages(cmd.Root())
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			for name, text := range pages {
				if err := os.WriteFile(filepath.Join(args[0], name), []byte(text), 0o644); err != nil { //nolint:gosec // everybody may read it
					return err
				}
			}
			_, err := fmt.Fprintf(env.Stdout, "%d pages in %s\n", len(pages), args[0])
			return err
		},
	}
}

// manPages returns the pages by file name.
func manPages(root *cobra.Command) map[string]string {
	all := []*cobra.Command{root}
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			all = append(all, c)
		}
	}
	var names []string
	for _, c := range all {
		names = append(names, manName(c))
	}
	pages := map[string]string{}
	for i, c := range all {
		pages[names[i]+".1"] = helpPageOf(c, true).roff(names[i], names)
	}
	return pages
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// roff formats the help as a manual page.
func (s *helpPage) roff(name string, others []string) string {
	var b strings.Builder
	section := func(title string) { fmt.Fprintf(&b, ".SH %s\n", strings.ToUpper(title)) }
	fmt.Fprintf(&b, ".TH %s 1 \"\" tacho\n", strings.ToUpper(name))
	section("Name")
	fmt.Fprintf(&b, "%s \\- %s\n", name, escaped(s.short))
	section("Synopsis")
	fmt.Fprintf(&b, ".B %s\n", escaped(s.use))
	section("Examples")
	for _, try := range s.examples {
		fmt.Fprintf(&b, ".PP\n.nf\n%s\n.fi\n", escaped(strings.TrimRight(wrapCommand(try, 78), "\n")))
	}
	section("Description")
	for line := range strings.SplitSeq(s.long, "\n") {
		switch {
		case line == "":
			b.WriteString(".PP\n")
		case line[0] == ' ':
			fmt.Fprintf(&b, ".br\n%s\n", escaped(strings.TrimSpace(line)))
		default:
			fmt.Fprintln(&b, escaped(line))
		}
	}
	for _, p := range s.parts {
		section(p.title)
		for _, r := range p.rows {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", escaped(r.name), escaped(r.text))
		}
	}
	for _, line := range s.more {
		section("Environment")
		fmt.Fprintln(&b, escaped(line))
	}
	section("See also")
	fmt.Fprintln(&b, escaped(strings.Join(others, "(1), ")+"(1)"))
	return b.String()
}

// escaped escapes text for roff.
func escaped(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			b.WriteString(`\&`) // otherwise roff reads a request
		}
		b.WriteString(line)
	}
	return b.String()
}
