package arch

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var requirement = regexp.MustCompile(`(?m)^(?:require )?\s*([\w./-]+\.[\w./-]+) (v[\w.+-]+)`)

// Modules of tests that build tacho require at least tacho's own versions. Otherwise Go refuses to build them until "go mod
// tidy" ran, and only their slow targets would notice.
func TestTestModulesFollowTacho(t *testing.T) {
	own := requirements(read(t, "go.mod"))
	for _, name := range []string{"tests/library/go.mod", "tests/browser/go.mod", "deploy/check/go.mod"} {
		text := read(t, name)
		if !strings.Contains(text, "replace "+module+" => ") {
			continue // it does not build tacho
		}
		shared := 0
		for path, version := range requirements(text) {
			least, ok := own[path]
			if !ok {
				continue
			}
			shared++
			if slices.Compare(numbers(version), numbers(least)) < 0 {
				t.Errorf("%s: %s %s, but tacho requires %s: run go mod tidy there", name, path, version, least)
			}
		}
		if shared == 0 {
			t.Errorf("%s: no module in common with tacho", name)
		}
	}
}

func requirements(text string) map[string]string {
	out := map[string]string{}
	for _, m := range requirement.FindAllStringSubmatch(text, -1) {
		out[m[1]] = m[2]
	}
	return out
}

// numbers returns the numbers of a version: v1.2.3-rc.4 is 1, 2, 3.
func numbers(version string) (out []int) {
	release, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	for part := range strings.SplitSeq(release, ".") {
		n, _ := strconv.Atoi(part) // a version always has numbers
		out = append(out, n)
	}
	return out
}
