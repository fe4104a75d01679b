package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tacho-bench/tacho/internal/migrate"
	"github.com/tacho-bench/tacho/internal/spelling"
	"github.com/tacho-bench/tacho/outcome"
)

// translateLine rewrites flags of other tools to flags of tacho, and prints the translation. Flags of tacho on the same
// line take precedence.
func translateLine(env *Env, root *cobra.Command, args []string) (all, translated []string, err error) {
	cmd, _, err := root.Find(args)
	if err != nil || cmd == root || cmd.Flags().Lookup("base-url") == nil {
		return args, nil, nil //nolint:nilerr // cobra reports unknown commands
	}
	at := slices.Index(args, cmd.Name()) + 1
	head, rest := slices.Clone(args[:at]), args[at:]
	if cmd.Name() == "bench" {
		rest = rest[migrate.Words(rest):]
		if len(rest) > 0 && rest[0] == "serve" { // as in vllm bench serve
			rest, env.vllm = rest[1:], true
		}
		if len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			return nil, nil, usage(flagsOnly(cmd, rest))
		}
	}
	line, err := migrate.Line(rest, func(name string) bool { return cmd.Flags().Lookup(name) != nil })
	if err != nil {
		return nil, nil, usage(err)
	}
	explain(env, publicArgs(env.secrets, line.Flags), line.Needless)
	return slices.Concat(head, line.Flags, line.Rest), line.Flags, nil
}

// explain prints the translation for users who will type the flags again.
func explain(env *Env, flags, needless []string) {
	if len(flags) > 0 {
		var words []string
		for _, flag := range flags {
			name, value, _ := strings.Cut(flag, "=")
			words = append(words, strings.TrimSuffix(name+" "+outcome.Quoted(value), " true"))
		}
		_, _ = fmt.Fprintln(env.Stderr, "Flags of another tool, translated to "+strings.Join(words, " ")) // informational
	}
	for _, line := range needless {
		_, _ = fmt.Fprintln(env.Stderr, line) // informational
	}
}

// meantFlag returns a hint for an unknown flag of cmd, or an empty string if no
// flag is similar.
func meantFlag(cmd *cobra.Command, name string, all []string) string {
	nearest := spelling.Nearest(name, all)
	advice, exact := migrate.Advice(name)
	switch {
	case advice != "" && cmd.Flags().Lookup("base-url") != nil && (exact || nearest == ""):
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
	hint := spelling.DidYouMean(word, names)
	if ours := migrate.Commands[word]; ours != "" {
		hint = fmt.Sprintf(": type tacho %s with the same flags", ours)
	}
	return fmt.Errorf("unknown command %q%s (tacho --help lists all)", word, hint)
}

// badFlag converts an error of cobra about flags. cobra looks up flags of an
// unknown command in the root command, but the unknown command is the real
// error.
func badFlag(env *Env, cmd *cobra.Command, err error) error {
	if !cmd.HasParent() && len(env.Args) > 0 && !strings.HasPrefix(env.Args[0], "-") {
		return unknownCommand(cmd, env.Args[0])
	}
	var short *pflag.NotExistError
	if errors.As(err, &short) && short.GetSpecifiedShortnames() != "" {
		return fmt.Errorf("unknown flag -%s (tacho %s --help-all lists all)", short.GetSpecifiedShortnames(), cmd.Name())
	}
	return badValue(env, err)
}
