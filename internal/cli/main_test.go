//go:build !real

package cli_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestMain refuses to run the tests if a test started this binary as the program, for
// example with --sim: the tests would start it again and again. Such a test needs the
// build tag real.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintf(os.Stderr, "a test started its own binary as tacho %s: it needs the build tag real, or --virtual\n", os.Args[1])
		os.Exit(1)
	}
	os.Exit(m.Run())
}
