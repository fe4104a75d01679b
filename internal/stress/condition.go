//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
)

// condition is an environment for tests.
type condition struct {
	name  string
	loops int      // processes that each use a core
	env   []string // variables for the test binary
	quota bool     // limit the CPU time of the test binary and its children
	pulse bool     // stop and continue the test binary and its children
}

// busyLoops is twice the number of cores of the smallest machine on which the tests must
// pass. A thread then waits for several time slices.
const busyLoops = 4

var (
	// quiet finds tests failing without load.
	quiet = condition{name: "quiet"}

	// busy delays every thread by some milliseconds. It finds sleeps too short
	// and wrong assumptions about operations in flight.
	busy = condition{name: "busy", loops: busyLoops}

	// oneProc runs one goroutine at a time and switches only if the goroutine blocks, or
	// after 10 ms. It finds tests in which another goroutine must run first.
	oneProc = condition{name: "one-proc", env: []string{"GOMAXPROCS=1"}}

	// crowded runs more threads than cores, so that the kernel preempts goroutines at any
	// instruction, even while they hold a lock. It finds interleavings that Go's
	// scheduler alone does not produce.
	crowded = condition{name: "crowded", loops: busyLoops, env: []string{"GOMAXPROCS=8"}}

	// quota lets the process run for 30 ms and then stops it until the next period of 100
	// ms, like a container with a CPU limit.
	quota = condition{name: "quota", quota: true}

	// pulse stops all processes of the test for up to 900 ms of every second, like a host
	// that takes cores away from a virtual machine. All timers that expire during a stop
	// fire at its end.
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

// chooseConditions returns the named conditions, or all if names is empty.
func chooseConditions(names string) ([]condition, error) {
	if names == "" {
		return conditions, nil
	}
	var chosen []condition
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(conditions, func(c condition) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown condition %q; choose from %s", name, conditionNames())
		}
		chosen = append(chosen, conditions[i])
	}
	return chosen, nil
}
