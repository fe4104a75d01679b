//go:build unix

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// test is a test or subtest of a package.
type test struct {
	pkg, name string
}

// cell counts the runs of a test under a condition.
type cell struct {
	test
	condition string
}

// tally counts runs and failures.
type tally struct {
	conditions  []string // in the order of the columns
	unavailable map[string]string
	runs        map[cell]int
	failures    map[cell]int
}

func newTally(conditions []condition) *tally {
	t := &tally{unavailable: map[string]string{}, runs: map[cell]int{}, failures: map[cell]int{}}
	for _, c := range conditions {
		t.conditions = append(t.conditions, c.name)
	}
	return t
}

// add counts a run of a test binary. It returns the tests that failed under this
// condition for the first time.
func (t *tally) add(pkg, condition string, v verdict) (first []string) {
	for _, name := range v.ended {
		t.runs[cell{test{pkg, name}, condition}]++
	}
	for _, name := range v.failed {
		c := cell{test{pkg, name}, condition}
		if t.failures[c]++; t.failures[c] == 1 {
			first = append(first, name)
		}
	}
	return first
}

// failed returns the tests with at least one failure, sorted by name.
func (t *tally) failed() []test {
	tests := map[test]bool{}
	for c := range t.failures {
		tests[c.test] = true
	}
	return slices.SortedFunc(maps.Keys(tests), func(a, b test) int {
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name))
	})
}

// neverFailed returns the number of test functions without a failure in themselves or
// their subtests.
func (t *tally) neverFailed() int {
	functions := map[test]bool{}
	for c := range t.runs {
		if !strings.Contains(c.name, "/") {
			functions[c.test] = true
		}
	}
	for c := range t.failures {
		name, _, _ := strings.Cut(c.name, "/")
		delete(functions, test{c.pkg, name})
	}
	return len(functions)
}

// write prints the table of failures as Markdown.
func (t *tally) write(w io.Writer) error {
	var b strings.Builder
	tests := t.failed()
	if len(tests) > 0 {
		fmt.Fprintf(&b, "Failures/runs:\n\n| package | test | %s |\n|---|---|%s\n", strings.Join(t.conditions, " | "),
			strings.Repeat("---|", len(t.conditions)))
		for _, test := range tests {
			fmt.Fprintf(&b, "| %s | %s |", test.pkg, strings.ReplaceAll(test.name, "|", `\|`))
			for _, condition := range t.conditions {
				fmt.Fprintf(&b, " %s |", t.text(cell{test, condition}))
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "Tests that never failed: %d.\n", t.neverFailed())
	for _, condition := range t.conditions {
		if why := t.unavailable[condition]; why != "" {
			fmt.Fprintf(&b, "The condition %s is unavailable: %s.\n", condition, why)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// text returns the text of a cell. Failures outside tests have no number of runs.
func (t *tally) text(c cell) string {
	switch {
	case t.unavailable[c.condition] != "":
		return "n/a"
	case c.name == outsideTests:
		return fmt.Sprint(t.failures[c])
	default:
		return fmt.Sprintf("%d/%d", t.failures[c], t.runs[c])
	}
}
