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
	os.Exit(withCache(m))
}

// withCache runs the tests with a cache directory of their own.
func withCache(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tacho-cache-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} { // of Linux, macOS and Windows
		_ = os.Setenv(name, dir)
	}
	return m.Run()
}
