//go:build unix

package main

import (
	"slices"
	"strings"
)

// outsideTests is the name of a failure outside all tests, for instance in TestMain.
const outsideTests = "(outside tests)"

// state is the last state of a test reported by the test binary.
type state int

const (
	running state = iota + 1
	paused        // waits in t.Parallel
	passed
	skipped
	failed
)

// reported maps the words of package testing to states.
var reported = map[string]state{
	"RUN": running, "CONT": running, "PAUSE": paused, "PASS:": passed, "SKIP:": skipped, "FAIL:": failed,
}

// line is a line of output. test is empty if the line belongs to no test.
type line struct {
	test, text string
}

// transcript is the output of one run of a test binary with -test.v=test2json.
type transcript struct {
	names    []string // in the order of their start
	states   map[string]state
	lines    []line
	current  string // last test to print
	complete bool   // package testing printed its final PASS or FAIL

	// panicReported is set if a test failed right before the panic was printed. Then the
	// other running tests are not to blame.
	panicReported bool
	lastFailed    bool // the last line reported a failed test
}

// marker precedes every line of package testing about a test.
const marker = "\x16"

// add parses the next line of output and reports whether a test started, paused,
// continued or ended.
func (t *transcript) add(text string) (progress bool) {
	before, frame, framed := strings.Cut(text, marker)
	if before != "" {
		t.panicReported = t.panicReported || t.lastFailed && strings.HasPrefix(before, "panic: ")
		t.lastFailed = false
		t.lines = append(t.lines, line{t.current, before})
	}
	if !framed {
		return false
	}
	return t.report(frame)
}

// report parses a line of package testing about a test.
func (t *transcript) report(frame string) bool {
	words := strings.Fields(frame)
	switch {
	case len(words) == 1 && (words[0] == "PASS" || words[0] == "FAIL"):
		t.complete, t.current = true, ""
	case len(words) >= 2 && words[1] == "NAME":
		t.current = strings.Join(words[2:], "")
	case len(words) >= 3 && reported[words[1]] != 0:
		t.current = words[2]
		t.lines = append(t.lines, line{t.current, frame})
		t.set(words[2], reported[words[1]])
		return true
	default:
		t.lines = append(t.lines, line{t.current, frame})
	}
	return false
}

func (t *transcript) set(name string, s state) {
	if t.states == nil {
		t.states = map[string]state{}
	}
	if t.states[name] == 0 {
		t.names = append(t.names, name)
	}
	t.states[name] = s
	t.lastFailed = s == failed
}

// verdict is the result of one run of a test binary.
type verdict struct {
	ended  []string // passed, failed and skipped tests
	failed []string // without parents of a failed subtest
	again  bool     // the run ended early; run the remaining tests again
}

// judge attributes failures to tests after the test binary has ended.
func (t *transcript) judge(ok bool) verdict {
	var v verdict
	var blamed []string
	for _, name := range t.names {
		switch s := t.states[name]; {
		case s == failed, s == running && !t.complete && !t.panicReported:
			blamed = append(blamed, name)
			v.ended = append(v.ended, name)
		case s == passed, s == skipped:
			v.ended = append(v.ended, name)
		}
	}
	for _, name := range blamed {
		if !slices.ContainsFunc(blamed, func(other string) bool { return strings.HasPrefix(other, name+"/") }) {
			v.failed = append(v.failed, name)
		}
	}
	if !ok && len(v.failed) == 0 {
		v.failed = []string{outsideTests}
	}
	v.again = !t.complete && len(v.failed) > 0 && len(v.functions()) > 0
	return v
}

// functions returns the finished test functions, without subtests.
func (v verdict) functions() []string {
	return slices.DeleteFunc(slices.Clone(v.ended), func(name string) bool { return strings.Contains(name, "/") })
}

// output returns the output of a test, its parents and its subtests. If the run ended
// early, it returns the output of all tests, because any of them may be the cause.
func (t *transcript) output(name string) string {
	var b strings.Builder
	for _, l := range t.lines {
		if !t.complete || name == outsideTests || l.test == "" || within(name, l.test) || within(l.test, name) {
			b.WriteString(l.text)
		}
	}
	return b.String()
}

// within reports whether name is parent or one of its subtests.
func within(name, parent string) bool {
	return name == parent || strings.HasPrefix(name, parent+"/")
}
