package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tacho-bench/tacho/internal/spelling"
	"github.com/tacho-bench/tacho/transport/socket"
)

const variablePrefix = "TACHO_"

const environmentDoc = `Every flag has a variable: TACHO_ and its name in capitals, with underscores (--base-url is TACHO_BASE_URL, --insecure is TACHO_INSECURE=true). ` +
	`Precedence: flags, variables, --plan file. Separate several values with newlines. ` +
	`If flags select a simulated engine, variables that select a server are ignored, and vice versa. ` +
	`TACHO_RECEIVER=ordinary runs the receive thread on Linux as an ordinary goroutine.`

// variable returns the environment variable of a flag.
func variable(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Flags that select a server, and flags that select a simulated engine. If a
// flag of one group is on the command line, variables of the other group are
// ignored.
var (
	serverFlags = []string{"base-url", "host", "port"}
	engineFlags = []string{"sim", "virtual", engineFlag}
)

// fromEnvironment adds flags for environment variables in front of an expanded
// command line, unless the command line has these flags.
func fromEnvironment(env *Env, root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil || cmd == root || cmd.Hidden || slices.Contains(args, "--help") {
		return args
	}
	warnUnknown(env, root)
	said, void := saidBy(cmd, args)
	var out []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value := env.Getenv(variable(f.Name))
		if value == "" || said[f.Value] || slices.Contains(void, f.Name) || !hasVariable(f) {
			return
		}
		values := []string{value}
		if f.Value.Type() == listType {
			values = strings.FieldsFunc(value, func(r rune) bool { return r == '\n' })
		}
		for _, v := range values {
			out = append(out, "--"+f.Name+"="+v)
		}
	})
	at := slices.Index(args, cmd.Name()) + 1
	return slices.Insert(args, at, out...)
}

// saidBy returns the flags on a command line, and the names of the flags that
// conflict with them.
func saidBy(cmd *cobra.Command, args []string) (said map[pflag.Value]bool, void []string) {
	said = map[pflag.Value]bool{} // an alias has the value of its flag
	if cmd.Name() == "predict" {
		void = serverFlags
	}
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		f := cmd.Flags().Lookup(name)
		if f == nil || !strings.HasPrefix(arg, "--") {
			continue
		}
		said[f.Value] = true
		switch {
		case cmd.Flags().Lookup("base-url") == nil: // the command does not measure
		case slices.Contains(engineFlags, name):
			void = append(void, serverFlags...)
		case slices.Contains(serverFlags, name):
			void = append(void, engineFlags...)
		}
	}
	return said, void
}

// hasVariable reports whether a flag has an environment variable. All flags do,
// except help flags and internal flags.
func hasVariable(f *pflag.Flag) bool {
	return !slices.Contains([]string{"help", helpAllFlag, "version"}, f.Name) && (!f.Hidden || noted(f, groupNote) != "")
}

// warnUnknown warns about TACHO_ variables that do not match any flag.
func warnUnknown(env *Env, root *cobra.Command) {
	known := []string{strings.TrimPrefix(natsTokenVariable, variablePrefix), strings.TrimPrefix(socket.ReceiverVariable, variablePrefix)}
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if hasVariable(f) {
				known = append(known, strings.TrimPrefix(variable(f.Name), variablePrefix))
			}
		})
	}
	for _, pair := range env.Environ {
		name, ours := strings.CutPrefix(strings.SplitN(pair, "=", 2)[0], variablePrefix)
		if !ours || slices.Contains(known, name) {
			continue
		}
		hint := "tacho bench --help-all lists all"
		if nearest := spelling.Nearest(name, known); nearest != "" {
			hint = "did you mean " + variablePrefix + nearest + "?"
		}
		_, _ = fmt.Fprintf(env.Stderr, "%s%s: unknown variable, ignored (%s)\n", variablePrefix, name, hint) // informational
	}
}

// badValue adds the name of the environment variable to an error, if the value
// came from one.
func badValue(env *Env, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && env.Getenv(variable(invalid.GetFlag().Name)) == invalid.GetValue() {
		return fmt.Errorf("%s: %w", variable(invalid.GetFlag().Name), err)
	}
	return err
}

// withoutVariables returns the environment for a process configured by flags
// only. The receiver has no flag.
func withoutVariables() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, variablePrefix) && !strings.HasPrefix(pair, socket.ReceiverVariable+"=")
	})
}
