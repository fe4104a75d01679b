package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// realTag matches files of the real tier, built by make test-real.
var realTag = regexp.MustCompile(`(?m)^//go:build (.*[^!])?\breal\b`)

// ownTags match tests with their own make target.
var ownTags = regexp.MustCompile(`(?m)^//go:build .*\b(oracle|engines|vllm|hostile|bombs|netns|large|coverage|image|apiserver)\b`)

type testFile struct {
	path string
	text []byte
	ast  *ast.File
}

func testFiles(t *testing.T) (files []testFile) {
	t.Helper()
	must.Do(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 2 && d.Name()[0] == '.') {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f := testFile{path: strings.TrimPrefix(path, root+"/")}
		if f.text, err = os.ReadFile(path); err != nil {
			return err
		}
		f.ast, err = parser.ParseFile(token.NewFileSet(), path, f.text, parser.ParseComments)
		files = append(files, f)
		return err
	}))
	return files
}

// A test of the real tier is called TestReal..., and its file has the tag real
// and _real_ in its name. So make test-real runs all of them, and make test
// none.
func TestTiers(t *testing.T) {
	n := 0
	for _, f := range testFiles(t) {
		tagged, named := realTag.Match(f.text), strings.Contains(filepath.Base(f.path), "_real_")
		if tagged != named {
			t.Errorf("%s: the tag real and _real_ in the name of the file go together", f.path)
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") || fn.Name.Name == "TestMain" {
				continue
			}
			if strings.HasPrefix(fn.Name.Name, "TestReal") != tagged {
				t.Errorf("%s: %s: tests of the real tier are called TestReal..., and others are not", f.path, fn.Name.Name)
			}
			if tagged {
				n++
			}
		}
	}
	if n == 0 {
		t.Error("the real tier has no tests")
	}
}

// mayExec lists files of the hermetic tier that import os/exec, with the
// reason.
var mayExec = map[string]string{
	"internal/proof/child_test.go":           "benchmarks",
	"internal/proof/command_test.go":         "benchmarks",
	"internal/proof/peer_test.go":            "benchmarks",
	"internal/proof/receivers_linux_test.go": "benchmarks",
	"internal/proof/soak_test.go":            "benchmarks",
	"internal/proof/view_linux_test.go":      "benchmarks",
	"metric/dialect_test.go":                 "only with -dialects, which writes the expected values",
	"sim/load_test.go":                       "benchmarks",
	"transport/bench_linux_test.go":          "benchmarks",
}

// maySleep lists files that sleep in real time, with the reason.
var maySleep = map[string]string{
	"internal/bench/append_real_linux_test.go":        "polls /proc/locks for a waiter",
	"deploy/check/chart/apiserver_test.go":            "polls a server for readiness",
	"internal/cli/cli_test.go":                        "polls a file",
	"internal/cli/held_real_test.go":                  "polls a condition",
	"internal/cli/scripts_real_test.go":               "polls for the end of a process",
	"internal/cli/stall_real_test.go":                 "the stop of the client that is measured",
	"internal/cli/sweep_vllm_test.go":                 "polls a condition",
	"internal/cluster/cuts_netns_test.go":             "the length of a cut is the case",
	"internal/cluster/netns_test.go":                  "the delay of a link",
	"internal/hostile/proxy_test.go":                  "a server in a bubble or on loopback, whose reset comes after its bytes",
	"internal/hostile/shapes_test.go":                 "servers in a bubble or on loopback that trickle",
	"internal/proof/burst_linux_test.go":              "benchmarks",
	"internal/proof/shapes_real_linux_test.go":        "a relay that holds bytes back",
	"internal/proof/cost_test.go":                     "benchmarks",
	"internal/proof/disturbed_real_linux_test.go":     "polls a port; the load before an agent is killed",
	"internal/proof/verdict_real_linux_test.go":       "the stops of the client that are measured",
	"internal/proof/witness_real_linux_test.go":       "the schedule of a server; polls a condition",
	"transport/bench_linux_test.go":                   "benchmarks",
	"transport/clock_real_linux_test.go":              "the gaps between segments that are timed",
	"transport/helpers_test.go":                       "polls a condition",
	"transport/socket/clock_real_linux_test.go":       "the gaps between segments that are timed",
	"transport/socket/helpers_linux_test.go":          "polls a counter of the receive thread",
	"transport/socket/tap/network_real_linux_test.go": "the gaps between segments that are timed",
	"transport/socket/tap/tap_linux_test.go":          "polls a condition",
}

// Tests of make test start no other programs and never sleep for a fixed time,
// so that results do not depend on the machine.
func TestHermetic(t *testing.T) {
	for _, f := range testFiles(t) {
		hermetic := !realTag.Match(f.text) && !ownTags.Match(f.text)
		if hermetic && imports(f.ast, "os/exec") && mayExec[f.path] == "" {
			t.Errorf("%s imports os/exec: move the test to the real tier, or add the file and the reason to mayExec", f.path)
		}
		if f.path != "internal/arch/tiers_test.go" && bytes.Contains(f.text, []byte("time.Sleep(")) && !imports(f.ast, "testing/synctest") && maySleep[f.path] == "" {
			t.Errorf("%s sleeps in real time: wait for an event, use a bubble of testing/synctest, or add the file and the reason to maySleep", f.path)
		}
	}
}

func imports(f *ast.File, path string) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(path) })
}
