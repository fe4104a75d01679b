package run

import (
	"errors"
	"io"
	"sort"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/workload"
)

// unsent counts sessions that were due before the end of a level and never
// started: they waited for --max-concurrency when --max-seconds ended the
// level, or their agent was lost. A closed loop limited by time has no such
// sessions, because its sessions are due when they start.
func (r *Runner) unsent(s *level, begun int) int {
	if s.config.Interrupted || r.stoppedEarly() {
		return 0 // covered by other rules
	}
	due := s.config.Planned
	if after, early := r.endedAfter(s.outcome.Epoch); early {
		due = s.dueBefore(after)
	}
	return max(due-begun-s.notReceived(begun), 0)
}

// notReceived estimates the number of sessions that agents sent and whose records did not arrive.
func (s *level) notReceived(begun int) int {
	requests := 0
	for i := range s.config.Agents {
		requests += s.config.Agents[i].Requests
	}
	return s.config.NotReceived() * max(begun, 1) / max(requests, 1)
}

// dueBefore counts the sessions that are due before a time, or all of them if the time
// is 0. Sessions that are due when they start have no known number.
func (s *level) dueBefore(end time.Duration) int {
	due := 0
	for at := range s.pacer.Arrivals() {
		if end > 0 && (at == tacho.ASAP || at >= end) {
			break
		}
		due++
	}
	return available(s.plain, due)
}

// stoppedEarly reports whether the level was asked to stop sending.
func (r *Runner) stoppedEarly() bool {
	select {
	case <-r.Enough:
		return true
	default:
		return false
	}
}

// available returns how many of the first n sessions a workload contains.
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
