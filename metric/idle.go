package metric

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tacho"
	"tacho/stat"
)

// turnaround is what a client that is not disturbed needs at most between the end of
// an answer and the next request of its slot. Measured on two cores: 0.2 to 0.5 ms.
const turnaround = 500 * time.Microsecond

// idleMost is the part of the time of all slots that may be empty: throughput is
// lower by as much, and errors up to 2 % are VALID.
const idleMost = 0.02

// Idle is for how long the slots of a closed loop held no request. The server had
// nothing to do in them, so throughput is lower than it could be.
type Idle struct {
	Share  float64 `json:"share"`  // of the time of all slots
	Excess float64 `json:"excess"` // the part of Share that an undisturbed client would not need
	Millis float64 `json:"ms"`     // mean time between an answer and the next request
}

// idle is nil unless the load is a closed loop without think time.
//
// Records do not have the number of their slot. In a closed loop every request but the
// first ones is sent because another has ended, so the k-th end, in the order of time,
// frees the slot of the k-th request after the first ones.
func (a *Accumulator) idle(c Config) *Idle {
	limit := c.MaxConcurrency
	if c.RequestRate > 0 || limit == 0 || len(a.marks) < limit+limit/2+leastGaps {
		return nil
	}
	all := make([]*marks, 0, len(a.marks))
	for i := range a.marks {
		m := &a.marks[i]
		if m.turn > 0 || m.sent == tacho.Never || m.due < m.slot {
			return nil // think time, a request that was not sent, or arrival times of the workload's own
		}
		all = append(all, m)
	}
	if a.thinned.every > 0 {
		return a.idleOfMany(limit)
	}
	ends := slices.Clone(all)
	slices.SortFunc(all, func(a, b *marks) int { return cmp.Compare(a.sent, b.sent) })
	slices.SortFunc(ends, func(a, b *marks) int { return cmp.Compare(a.end, b.end) })
	gaps := make([]float64, 0, len(all)-limit)
	sum := 0.0
	for k, next := range all[limit:] {
		gap := max(next.sent-ends[k].end-next.connect, 0).Seconds()
		gaps, sum = append(gaps, gap), sum+gap
	}
	slots := float64(limit) * (all[len(all)-1].sent - all[limit-1].sent).Seconds()
	if slots <= 0 {
		return nil
	}
	usual := min(stat.New(slices.Clone(gaps)).Quantile(0.5), turnaround.Seconds())
	n := float64(len(gaps))
	return &Idle{Share: min(sum/slots, 1), Excess: min(max(sum-n*usual, 0)/slots, 1), Millis: 1e3 * sum / n}
}

// idleOfMany is the same of a run whose marks are not all kept: by the sum of the times
// for which requests were in flight. The last requests count beyond the last sending,
// which is little of so many.
func (a *Accumulator) idleOfMany(limit int) *Idle {
	slots := float64(limit) * a.sents.length().Seconds()
	if slots <= 0 {
		return nil
	}
	n, sum := float64(a.sents.n), max(slots-a.inFlight.Seconds(), 0)
	return &Idle{Share: sum / slots, Excess: max(sum-n*turnaround.Seconds(), 0) / slots, Millis: 1e3 * sum / n}
}

// leastGaps is how many requests must follow another to speak of idle slots.
const leastGaps = 20

// idleRules ask whether the slots of a closed loop were idle because of the client.
var idleRules = []Rule{
	{
		Code: "idle-slots", Unit: "share", Note: never, Degraded: idleMost, Invalid: 0.20,
		Doc: fmt.Sprintf("in a closed loop: time in which slots held no request because the client was late / time of all slots, without connecting and without the median gap or %v, whichever is less, for each request: throughput is lower by as much", turnaround),
		Do:  "give the client a core of its own, lift its CPU quota, or measure from another machine",
		value: func(s *Summary) (float64, bool) {
			if s.Idle == nil {
				return 0, false
			}
			return s.Idle.Excess, true
		},
		inWords: func(s *Summary, v float64) string {
			return fmt.Sprintf("the client was late to fill free slots for %s of the time (mean %.1f ms), so the server could have served %.1f instead of %.1f req/s",
				percent(v), s.Idle.Millis, s.Throughput.RequestsPerS/max(1-s.Idle.Share, 1e-9), s.Throughput.RequestsPerS)
		},
	},
	{
		Code: "turnaround", Unit: "share", Note: idleMost, Degraded: never, Invalid: never,
		Doc: "in a closed loop: time in which slots held no request / time of all slots. Short requests make the time between two of them a visible part",
		Do:  "raise --max-concurrency until throughput does not rise any more",
		value: func(s *Summary) (float64, bool) {
			if s.Idle == nil || s.Idle.Excess > idleMost {
				return 0, false
			}
			return s.Idle.Share, true
		},
		inWords: func(s *Summary, v float64) string {
			return fmt.Sprintf("slots were empty for %s of the time, %.2f ms between an answer and the next request", percent(v), s.Idle.Millis)
		},
	},
}
