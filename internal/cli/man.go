package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
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
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			for _, c := range append(root.Commands(), root) {
				c.Long = manDescription(c)
				c.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = markdown.Replace(f.Usage) })
			}
			for _, c := range append(root.Commands(), root) {
				var page bytes.Buffer
				if c.Hidden {
					continue
				}
				if err := doc.GenMan(c, &doc.GenManHeader{Source: "tacho", Manual: "tacho"}, &page); err != nil {
					return err
				}
				path := filepath.Join(args[0], strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
				text := flagName.ReplaceAllFunc(page.Bytes(), func(name []byte) []byte { return bytes.ReplaceAll(name, []byte("-"), []byte(`\-`)) })
				if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // everybody may read it
					return err
				}
			}
			_, err := fmt.Fprintf(env.Stdout, "%d pages in %s\n", len(root.Commands()), args[0])
			return err
		},
	}
}

// flagName matches a flag in a page. An unescaped - may become a hyphen, which a shell does not read.
var flagName = regexp.MustCompile(`--[a-z0-9-]+`)

// markdown escapes text for cobra, which writes a page as Markdown first.
var markdown = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, ">", `\>`, "[", `\[`, "]", `\]`, "`", "\\`")

// manDescription is the description of a command with the values of its flags, exit codes and variables.
func manDescription(cmd *cobra.Command) string {
	var b strings.Builder
	b.WriteString(markdown.Replace(cmp.Or(cmd.Long, cmd.Short+".")))
	for _, p := range append(valueParts(cmd, true), exitPart()) {
		fmt.Fprintf(&b, "\n\n# %s\n", strings.ToUpper(p.title))
		for _, r := range p.rows {
			fmt.Fprintf(&b, "**%s**\n\t%s\n\n", markdown.Replace(r.name), markdown.Replace(r.text))
		}
	}
	return b.String() + "\n\n# ENVIRONMENT\n" + markdown.Replace(environmentDoc)
}
