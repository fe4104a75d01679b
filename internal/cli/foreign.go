package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/internal/spelling"
)

// foreignCommands maps commands of other benchmark tools to tacho's commands.
var foreignCommands = map[string]string{
	"benchmark":   "bench",
	"load-test":   "bench",
	"mock-server": "sim",
	"perf":        "bench",
	"plot":        "report",
	"profile":     "bench",
	"run":         "bench",
	"serve-bench": "bench",
	"visualize":   "report",
}

// meantCommand returns a hint for an unknown command, or an empty string if no
// command is similar.
func meantCommand(word string, names []string) string {
	if ours := foreignCommands[word]; ours != "" {
		return ": use tacho " + ours
	}
	return spelling.DidYouMean(word, names)
}

// meantFlag returns a hint for an unknown flag of cmd, or an empty string if no
// flag is similar.
func meantFlag(cmd *cobra.Command, name string, all []string) string {
	advice, nearest := adviceFor(name), spelling.Nearest(name, all)
	switch {
	case advice != "" && cmd.Flags().Lookup("base-url") != nil && (untranslated[name] != "" || nearest == ""):
		return ": " + advice
	case nearest != "":
		return fmt.Sprintf(", did you mean --%s?", nearest)
	}
	return ""
}

// unknownCommand suggests a command for an unknown word.
func unknownCommand(root *cobra.Command, word string) error {
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fmt.Errorf("unknown command %q%s (tacho --help lists all)", word, meantCommand(word, names))
}

// badFlag converts an error of cobra about flags. cobra looks up flags of an
// unknown command in the root command, but the unknown command is the real
// error.
func badFlag(env *Env, cmd *cobra.Command, err error) error {
	if !cmd.HasParent() && len(env.Args) > 0 && !strings.HasPrefix(env.Args[0], "-") {
		return unknownCommand(cmd, env.Args[0])
	}
	return badValue(env, err)
}
