package bench

import "testing"

// TestBuildIsTold: test binaries have no commit, as builds outside of a checkout. Two of
// them are told apart by their bytes.
func TestBuildIsTold(t *testing.T) {
	t.Parallel()
	if v := Version(); v != "(devel)" && v != "unknown" {
		t.Skipf("this binary knows its version: %s", v)
	}
	if first, second := Build(), Build(); first == Version() || first != second {
		t.Errorf("the build is %q, then %q", first, second)
	}
}
