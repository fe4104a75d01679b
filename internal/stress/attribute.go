//go:build unix

package main

import (
	"slices"
	"strings"
)

// outsideTests is the name that a failure has if no test was running, for instance in TestMain.
const outsideTests = "(outside tests)"

// A state is what the test binary reported last about a test.
type state int

const (
	running state = iota + 1
	paused        // waits in t.Parallel
	passed
	skipped
	failed
)

// reported are the states by the words of package testing.
var reported = map[string]state{
	"RUN": running, "CONT": running, "PAUSE": paused, "PASS:": passed, "SKIP:": skipped, "FAIL:": failed,
}

// A line of output belongs to a test, or to none if test is empty.
type line struct {
	test, text string
}

// A transcript is the output of one run of a test binary with -test.v=test2json.
type transcript struct {
	names    []string // in the order of their start
	states   map[string]state
	lines    []line
	current  string // the test that printed last
	complete bool   // package testing printed its final PASS or FAIL

	// A test that panics is reported as failed right before the panic is printed. Then the other tests that were
	// running are not to blame.
	panicReported bool
	lastFailed    bool // the last line reported a failed test
}

// marker precedes every line that package testing prints about a test.
const marker = "\x16"

// add takes the next line of output and returns true if a test started, paused, continued or ended.
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

// report takes a line of package testing about a test.
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

// A verdict is what one run of a test binary says about its tests.
type verdict struct {
	ended  []string // all tests that passed, failed or were skipped
	failed []string // a test whose subtest failed is not among them
	again  bool     // the run ended early: run the tests that did not end
}

// judge attributes failures to tests, once the test binary has ended.
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

// functions returns the test functions that ended, without subtests.
func (v verdict) functions() []string {
	return slices.DeleteFunc(slices.Clone(v.ended), func(name string) bool { return strings.Contains(name, "/") })
}

// output returns the output of a test, its parents and its subtests. It returns the output of all tests if the run
// ended early, because the cause may be in the output of any of them.
func (t *transcript) output(name string) string {
	var b strings.Builder
	for _, l := range t.lines {
		if !t.complete || name == outsideTests || l.test == "" || within(name, l.test) || within(l.test, name) {
			b.WriteString(l.text)
		}
	}
	return b.String()
}

// within reports whether a test is another test or one of its subtests.
func within(name, parent string) bool {
	return name == parent || strings.HasPrefix(name, parent+"/")
}
