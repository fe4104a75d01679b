package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tacho/internal/spelling"
	"tacho/transport"
)

const variablePrefix = "TACHO_"

const environmentDoc = `Every flag has a variable: TACHO_ and its name in capitals, with underscores (--base-url is TACHO_BASE_URL, --insecure is TACHO_INSECURE=true). ` +
	`A flag goes before a variable, and a variable before the file of --plan. Several values stand on lines of their own. ` +
	`Where flags name a simulated engine, variables that name a server do not count, nor the other way round. ` +
	`TACHO_RECEIVER=ordinary has the receive thread of Linux run on an ordinary goroutine.`

// variable is the environment's name for a flag.
func variable(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Flags that name a server, and those that name an engine to simulate. One of the
// first on the command line makes variables for the others void, and so the
// other way round.
var (
	serverFlags = []string{"base-url", "host", "port"}
	engineFlags = []string{"sim", "virtual", engineFlag}
)

// fromEnvironment puts what variables say before the flags of a command line that
// expand has made, where it does not say it itself.
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

// saidBy are the flags that a command line has itself, and the names of those that
// do not go with them.
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
		case cmd.Flags().Lookup("base-url") == nil: // it measures nothing
		case slices.Contains(engineFlags, name):
			void = append(void, serverFlags...)
		case slices.Contains(serverFlags, name):
			void = append(void, engineFlags...)
		}
	}
	return said, void
}

// hasVariable says whether a flag may come from the environment: all may but those
// that ask for help, and those that only tacho gives itself.
func hasVariable(f *pflag.Flag) bool {
	return !slices.Contains([]string{"help", helpAllFlag, "version"}, f.Name) && (!f.Hidden || noted(f, groupNote) != "")
}

// warnUnknown names variables that are no flag of any command.
func warnUnknown(env *Env, root *cobra.Command) {
	known := []string{strings.TrimPrefix(natsTokenVariable, variablePrefix), strings.TrimPrefix(transport.ReceiverVariable, variablePrefix)}
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
		hint := "tacho bench --help-all tells which there are"
		if nearest := spelling.Nearest(name, known); nearest != "" {
			hint = "did you mean " + variablePrefix + nearest + "?"
		}
		_, _ = fmt.Fprintf(env.Stderr, "%s%s is no variable that tacho knows, and is ignored: %s\n", variablePrefix, name, hint) // for information
	}
}

// badValue says where a value that cannot be read comes from, if that is not the
// command line.
func badValue(env *Env, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && env.Getenv(variable(invalid.GetFlag().Name)) == invalid.GetValue() {
		return fmt.Errorf("%s: %w", variable(invalid.GetFlag().Name), err)
	}
	return err
}

// withoutVariables is the environment of a process that is told all by flags. The receiver
// has no flag.
func withoutVariables() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, variablePrefix) && !strings.HasPrefix(pair, transport.ReceiverVariable+"=")
	})
}
