package backend

import (
	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/engine"
)

// The engine checks whether a Call implements Start, so a changed signature would disable Start without an error.
var (
	_ tacho.Call     = (*call)(nil)
	_ engine.Starter = (*call)(nil)
)
