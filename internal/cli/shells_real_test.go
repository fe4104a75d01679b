//go:build real

package cli_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestRealShells checks completion in real shells. `make shells` installs them.
func TestRealShells(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/shells"})
}
