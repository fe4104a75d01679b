package bench

import (
	"strings"
	"testing"
)

// Test binaries have no commit, like builds outside a checkout. Build adds a
// hash of the executable.
func TestBuildIsTold(t *testing.T) {
	if v := Version(); v != "(devel)" && v != "unknown" {
		t.Skipf("this binary knows its version: %s", v)
	}
	if first, second := Build(), Build(); !strings.HasPrefix(first, Version()+", executable sha256:") || first != second {
		t.Errorf("the build is %q, then %q", first, second)
	}
	described = "v0.1.0-3-g2597bf4c8d39"
	defer func() { described = "" }()
	if v := Version(); v != described {
		t.Errorf("version %q", v)
	}
}
