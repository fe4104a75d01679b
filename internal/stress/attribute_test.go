//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// read parses output in which ~ stands for the marker of package testing.
func read(output string) *transcript {
	t := &transcript{}
	for text := range strings.Lines(strings.ReplaceAll(output, "~", marker)) {
		t.add(text)
	}
	return t
}

func TestFailuresAreAttributed(t *testing.T) {
	for name, c := range map[string]struct {
		output string
		ok     bool
		want   verdict
	}{
		"all pass": {
			output: "~=== RUN   TestA\n~--- PASS: TestA (0.00s)\n~=== RUN   TestB\n~--- SKIP: TestB (0.00s)\n~PASS\n",
			ok:     true,
			want:   verdict{ended: []string{"TestA", "TestB"}},
		},
		"a test fails": {
			output: "~=== RUN   TestA\n    a_test.go:1: no\n~--- FAIL: TestA (0.00s)\n~=== RUN   TestB\n~--- PASS: TestB (0.00s)\n~FAIL\n",
			want:   verdict{ended: []string{"TestA", "TestB"}, failed: []string{"TestA"}},
		},
		"the report follows output without a newline": {
			output: "~=== RUN   TestA\nabc~--- FAIL: TestA (0.00s)\n~FAIL\n",
			want:   verdict{ended: []string{"TestA"}, failed: []string{"TestA"}},
		},
		"a subtest fails, not its parent": {
			output: "~=== RUN   TestA\n~=== RUN   TestA/x\n~=== NAME  TestA\n~--- FAIL: TestA (0.00s)\n~--- FAIL: TestA/x (0.00s)\n~=== RUN   TestAll\n~--- PASS: TestAll (0.00s)\n~=== NAME  \n~FAIL\n",
			want:   verdict{ended: []string{"TestA", "TestA/x", "TestAll"}, failed: []string{"TestA/x"}},
		},
		"a test panics": {
			output: "~=== RUN   TestA\n~--- PASS: TestA (0.00s)\n~=== RUN   TestB\n~--- FAIL: TestB (0.00s)\npanic: no [recovered, repanicked]\n\ngoroutine 7 [running]:\n",
			want:   verdict{ended: []string{"TestA", "TestB"}, failed: []string{"TestB"}, again: true},
		},
		"a test panics beside another": {
			output: "~=== RUN   TestA\n~=== PAUSE TestA\n~=== RUN   TestB\n~=== PAUSE TestB\n~=== CONT  TestA\n~=== CONT  TestB\n~--- FAIL: TestB (0.00s)\npanic: no\n",
			want:   verdict{ended: []string{"TestB"}, failed: []string{"TestB"}, again: true},
		},
		"a goroutine of a test panics while another test is paused": {
			output: "~=== RUN   TestA\n~=== PAUSE TestA\n~=== RUN   TestB\npanic: no\n\ngoroutine 7 [running]:\n",
			want:   verdict{ended: []string{"TestB"}, failed: []string{"TestB"}, again: true},
		},
		"a test failed before a goroutine of the next one panics": {
			output: "~=== RUN   TestA\n~--- FAIL: TestA (0.00s)\n~=== RUN   TestB\npanic: no\n",
			want:   verdict{ended: []string{"TestA", "TestB"}, failed: []string{"TestA", "TestB"}, again: true},
		},
		"a test failed and printed before a goroutine of another one panics": {
			output: "~=== CONT  TestB\n~=== CONT  TestA\n~--- FAIL: TestA (0.00s)\nof B\npanic: no\n",
			want:   verdict{ended: []string{"TestB", "TestA"}, failed: []string{"TestB", "TestA"}, again: true},
		},
		"a subtest hangs": {
			output: "~=== RUN   TestA\n~=== RUN   TestA/x\nSIGQUIT: quit\n",
			want:   verdict{ended: []string{"TestA", "TestA/x"}, failed: []string{"TestA/x"}, again: true},
		},
		"a test ends the process": {
			output: "~=== RUN   TestA\n",
			ok:     true,
			want:   verdict{ended: []string{"TestA"}, failed: []string{"TestA"}, again: true},
		},
		"TestMain fails before the tests": {
			output: "no browser\n",
			want:   verdict{failed: []string{outsideTests}},
		},
		"TestMain fails after the tests": {
			output: "~=== RUN   TestA\n~--- PASS: TestA (0.00s)\n~PASS\na goroutine is left\n",
			want:   verdict{ended: []string{"TestA"}, failed: []string{outsideTests}},
		},
		"TestMain runs no tests": {
			ok: true,
		},
	} {
		got := read(c.output).judge(c.ok)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(verdict{})); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestStartAndEndOfATestAreProgress(t *testing.T) {
	var tr transcript
	for text, want := range map[string]bool{
		marker + "=== RUN   TestA\n":         true,
		marker + "--- PASS: TestA (0.00s)\n": true,
		marker + "=== NAME  TestA\n":         false,
		marker + "PASS\n":                    false,
		"--- PASS: TestA (0.00s)\n":          false, // printed by the test
		"output\n":                           false,
	} {
		if got := tr.add(text); got != want {
			t.Errorf("%q: progress %t, want %t", text, got, want)
		}
	}
}

func TestOutputIsThatOfTheTest(t *testing.T) {
	const output = "start\n~=== RUN   TestA\nof A\n~=== RUN   TestA/x\nof x\n~=== RUN   TestA/y\nof y\n~--- FAIL: TestA/y (0.00s)\n" +
		"~=== NAME  TestA\n~--- FAIL: TestA (0.00s)\n~=== RUN   TestAB\nof AB\n"
	want := "start\n=== RUN   TestA\nof A\n=== RUN   TestA/y\nof y\n--- FAIL: TestA/y (0.00s)\n--- FAIL: TestA (0.00s)\n"
	if got := read(output + "~--- PASS: TestAB (0.00s)\n~FAIL\n").output("TestA/y"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	early := read(output + "panic: no\n").output("TestA/y")
	for _, want := range []string{"of x\n", "of AB\n", "panic: no\n"} {
		if !strings.Contains(early, want) {
			t.Errorf("the output of a run that ended early lacks %q:\n%s", want, early)
		}
	}
}
