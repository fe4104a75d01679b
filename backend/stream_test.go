package backend

import (
	"tacho"
	"tacho/engine"
)

// The engine looks for Start on a Call, so a changed signature would turn it off
// without an error.
var (
	_ tacho.Call     = (*call)(nil)
	_ engine.Starter = (*call)(nil)
)
