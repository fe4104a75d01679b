package cli

import (
	"maps"
	"slices"

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

// Untranslated are flags of other tools with advice.
var Untranslated = untranslated

// AdviceFor returns tacho's way for a flag of another tool.
var AdviceFor = adviceFor

// ForeignNames returns the flags of other tools that tacho translates, and the
// flags of tacho that replace them.
func ForeignNames() (theirs, ours []string) {
	for _, name := range renamedFlags {
		ours = append(ours, name)
	}
	theirs = slices.Concat(slices.Collect(maps.Keys(renamedFlags)), slices.Collect(maps.Keys(fixedFlags)), slices.Collect(maps.Keys(needlessFlags)),
		slices.Collect(maps.Keys(needlessValues)), slices.Collect(maps.Keys(combinedFlags)))
	return theirs, ours
}

// HasFlag reports whether a command has a flag.
func HasFlag(command, flag string) bool {
	cmd, _, err := newRoot(&Env{}).Find([]string{command})
	return err == nil && cmd.Flags().Lookup(flag) != nil
}
