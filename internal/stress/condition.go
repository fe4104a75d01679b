//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
)

// A condition is an environment that tests run in.
type condition struct {
	name  string
	loops int      // processes that use a core each
	env   []string // variables for the test binary
	quota bool     // limit the CPU time of the test binary and its children
	pulse bool     // stop and continue the test binary and its children
}

// busyLoops is twice the number of cores of the smallest machine that the tests must pass on, so that a thread waits
// for several time slices before it runs.
const busyLoops = 4

var (
	// quiet shows tests that fail without help.
	quiet = condition{name: "quiet"}

	// busy delays every thread by some milliseconds. This finds sleeps that are too short and operations that were
	// expected to be in flight.
	busy = condition{name: "busy", loops: busyLoops}

	// oneProc runs one goroutine at a time, and switches only if the goroutine blocks or after 10 ms. This finds
	// tests that need another goroutine to run first.
	oneProc = condition{name: "one-proc", env: []string{"GOMAXPROCS=1"}}

	// crowded has more threads than cores, so that the kernel preempts goroutines at any instruction, also if they
	// hold a lock. This finds orders of goroutines that Go's scheduler alone does not produce.
	crowded = condition{name: "crowded", loops: busyLoops, env: []string{"GOMAXPROCS=8"}}

	// quota lets the process run for 30 ms and then stops it until the next period of 100 ms starts, as a container
	// with a CPU limit does.
	quota = condition{name: "quota", quota: true}

	// pulse stops all processes of the test for up to 900 ms of every second, as a host that takes the virtual
	// machine's cores away does. Timers that expire during a stop all fire at its end.
	pulse = condition{name: "pulse", pulse: true}
)

var conditions = []condition{quiet, busy, oneProc, crowded, quota, pulse}

func conditionNames() string {
	var names []string
	for _, c := range conditions {
		names = append(names, c.name)
	}
	return strings.Join(names, ",")
}

// chooseConditions returns the conditions of a list of names, or all if the list is empty.
func chooseConditions(names string) ([]condition, error) {
	if names == "" {
		return conditions, nil
	}
	var chosen []condition
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(conditions, func(c condition) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no condition %q: choose from %s", name, conditionNames())
		}
		chosen = append(chosen, conditions[i])
	}
	return chosen, nil
}
