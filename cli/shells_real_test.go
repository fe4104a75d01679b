//go:build real

package cli_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestRealShells asks the shells themselves what they complete. `make shells` installs
// them.
func TestRealShells(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/shells"})
}
