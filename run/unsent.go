package run

import (
	"errors"
	"io"
	"sort"

	"tacho"
	"tacho/workload"
)

// unsent counts the sessions of a level that were due before its end and never
// began: --max-seconds cut them off while they waited for --max-concurrency, or
// the agent that had to send them was lost. A closed loop that ends by time has no
// such sessions, because its sessions are due when they begin.
func (r *Runner) unsent(s *level, begun int) int {
	if s.config.Interrupted || r.stoppedEarly() {
		return 0 // other rules tell
	}
	due, end := 0, r.Plan.MaxSeconds.Duration()
	for at := range s.pacer.Arrivals() {
		if end > 0 && (at == tacho.ASAP || at >= end) {
			break
		}
		due++
	}
	return max(available(s.plain, due)-begun, 0)
}

// stoppedEarly says whether the level was told that it had sent enough.
func (r *Runner) stoppedEarly() bool {
	select {
	case <-r.Enough:
		return true
	default:
		return false
	}
}

// available is how many of the first n sessions a workload has.
func available(work workload.Workload, n int) int {
	has := func(i int) bool {
		_, err := work.Session(uint64(i))
		return !errors.Is(err, io.EOF)
	}
	if n == 0 || has(n-1) {
		return n
	}
	return sort.Search(n, func(i int) bool { return !has(i) })
}
