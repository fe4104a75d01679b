package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/internal/spelling"
)

// shells are the supported shells and their script generators.
var shells = map[string]func(root *cobra.Command, w io.Writer) error{
	"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
	"zsh":        func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
	"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
	"powershell": func(root *cobra.Command, w io.Writer) error { return root.GenPowerShellCompletionWithDesc(w) },
}

var shellNames = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script that completes commands, flags and values in a shell",
		Long: `completion prints a script for a shell. With it, TAB completes commands, flags and
values: backends, datasets, profiles, metrics, formats and the directories of runs.

To load it in every new shell:
  bash:        tacho completion bash > /etc/bash_completion.d/tacho
  zsh:         tacho completion zsh > "${fpath[1]}/_tacho"
  fish:        tacho completion fish > ~/.config/fish/completions/tacho.fish
  powershell:  tacho completion powershell | Out-String | Invoke-Expression
bash needs the package bash-completion, and zsh the line "autoload -U compinit; compinit".`,
		Example: `  source <(tacho completion bash)
  tacho completion zsh > "${fpath[1]}/_tacho"
  tacho completion fish | source`,
		ValidArgs: shellNames,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("completion needs the name of a shell: %s", strings.Join(shellNames, ", "))
			}
			return knownWord("shell", args[0], shellNames)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return shells[args[0]](cmd.Root(), env.Stdout) },
	}
}

// knownWord returns an error if word is not in words.
func knownWord(what, word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return spelling.Unknown(what, word, words)
}
