package cli

import "tacho/outcome"

// Seen is env with somebody who gets what was measured.
func (env *Env) Seen(fn func(*outcome.Run)) *Env {
	env.seen = fn
	return env
}
