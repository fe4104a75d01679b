package cli

import "testing"

// Only builds from a tagged commit without local changes count as released.
func TestReleasedVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"v0.1.0 2597bf4c8d39":       true,
		"v0.1.0":                    true,
		"v0.2.0-rc.1 2597bf4c8d39":  true,
		"v0.1.0+dirty 2597bf4c8d39": false,
		"v0.0.0-20261118174750-2597bf4c8d39 2597bf4c8d39":   false,
		"v0.1.1-0.20261118174750-2597bf4c8d39 2597bf4c8d39": false,
		"(devel)": false,
		"unknown": false,
	} {
		if got := released.MatchString(version); got != want {
			t.Errorf("%s: released %t", version, got)
		}
	}
}
