package cli

import (
	"github.com/tacho-bench/tacho/outcome"
)

// Seen sets a function that receives the results.
func (env *Env) Seen(fn func(*outcome.Run)) *Env {
	env.seen = fn
	return env
}

// OwnFlags returns the flags of a command that are not options of a plan, with
// their help.
func OwnFlags(command string) (out [][2]string) {
	cmd, _, err := newRoot(&Env{}).Find([]string{command})
	if err != nil {
		panic(err)
	}
	for _, r := range flagParts(cmd, true)[0].rows {
		out = append(out, [2]string{r.name, r.text})
	}
	return out
}

// ExitCodes returns the exit codes with their meaning.
func ExitCodes() (out [][2]string) {
	for _, r := range exitPart().rows {
		out = append(out, [2]string{r.name, r.text})
	}
	return out
}

// EnvironmentDoc describes the environment variables.
const EnvironmentDoc = environmentDoc

// HasFlag reports whether a command has a flag.
func HasFlag(command, flag string) bool {
	cmd, _, err := newRoot(&Env{}).Find([]string{command})
	return err == nil && cmd.Flags().Lookup(flag) != nil
}
