package cli

import "tacho/outcome"

// Seen is env with somebody who gets what was measured.
func (env *Env) Seen(fn func(*outcome.Run)) *Env {
	env.seen = fn
	return env
}

// OwnFlags are the flags of a command that are no options of a plan, with their
// meaning.
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

// ExitCodes are the codes with their meaning.
func ExitCodes() (out [][2]string) {
	for _, r := range exitPart().rows {
		out = append(out, [2]string{r.name, r.text})
	}
	return out
}

// EnvironmentDoc says which variables there are.
const EnvironmentDoc = environmentDoc

// ForeignFlags are flags of other tools, each with the advice for it.
var ForeignFlags = foreignFlags

// HasFlag reports whether a command has a flag.
func HasFlag(command, flag string) bool {
	cmd, _, err := newRoot(&Env{}).Find([]string{command})
	return err == nil && cmd.Flags().Lookup(flag) != nil
}
