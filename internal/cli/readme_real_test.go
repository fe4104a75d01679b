//go:build real

package cli_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestRealReadmeCommands runs documented commands that measure with the kernel
// clock.
func TestRealReadmeCommands(t *testing.T) {
	params := readme(t, true)
	params.Cmds = map[string]func(*testscript.TestScript, bool, []string){"check": check}
	testscript.Run(t, params)
}
