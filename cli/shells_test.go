//go:build shells

package cli_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestShells asks the shells themselves what they complete. `make shells` installs
// them.
func TestShells(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/shells"})
}
