package bench

import "testing"

// Test binaries have no commit, like builds outside a checkout. Build adds a
// hash of the executable.
func TestBuildIsTold(t *testing.T) {
	t.Parallel()
	if v := Version(); v != "(devel)" && v != "unknown" {
		t.Skipf("this binary knows its version: %s", v)
	}
	if first, second := Build(), Build(); first == Version() || first != second {
		t.Errorf("the build is %q, then %q", first, second)
	}
}
