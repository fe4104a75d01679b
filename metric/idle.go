package metric

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

// turnaround is the longest time an undisturbed client needs between the end of an answer and the next
// request of the slot. Measured on two cores: 0.2 to 0.5 ms.
const turnaround = 500 * time.Microsecond

// maxIdle is the accepted share of empty slot time. Throughput is lower by this share, and errors up to
// 2 % are VALID.
const maxIdle = 0.02

// Idle is the time in which slots of a closed loop held no request. The server had no work for these
// slots, so throughput is lower than possible.
type Idle struct {
	Share  float64 `json:"share"`  // share of the time of all slots
	Excess float64 `json:"excess"` // the part of Share that an undisturbed client would avoid
	Millis float64 `json:"ms"`     // mean time between an answer and the next request
}

// idle returns nil unless the load is a closed loop without think time.
//
// Records do not contain the number of their slot. In a closed loop, every request after the initial
// ones is sent because another request has ended. So the k-th end, in order of time, frees the slot for
// the k-th request after the initial ones.
func (a *Accumulator) idle(c Config) *Idle {
	limit := c.MaxConcurrency
	if c.RequestRate > 0 || limit == 0 || len(a.marks) < limit+limit/2+minGaps {
		return nil
	}
	all := make([]*marks, 0, len(a.marks))
	for i := range a.marks {
		m := &a.marks[i]
		if m.turn > 0 || m.sent == tacho.Never || m.due < m.slot {
			return nil // think time, a request that was not sent, or arrival times from the workload
		}
		all = append(all, m)
	}
	if a.sampling.every > 0 {
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

// idleOfMany estimates the same for a run with a sample of marks, from the sum of the times in flight.
// The last requests count beyond the last send time, which is negligible in a run this long.
func (a *Accumulator) idleOfMany(limit int) *Idle {
	slots := float64(limit) * a.sents.length().Seconds()
	if slots <= 0 {
		return nil
	}
	n, sum := float64(a.sents.n), max(slots-a.inFlight.Seconds(), 0)
	return &Idle{Share: sum / slots, Excess: max(sum-n*turnaround.Seconds(), 0) / slots, Millis: 1e3 * sum / n}
}

// minGaps is the number of requests needed to report idle slots.
const minGaps = 20

// idleRules check if the client left slots of a closed loop empty.
var idleRules = []Rule{
	{
		Code: "idle-slots", Unit: "share", Note: never, Degraded: maxIdle, Invalid: 0.20,
		Doc:    fmt.Sprintf("in a closed loop: time in which slots were empty because the client was late / time of all slots, without the time to connect, and without the median gap or %v, whichever is less, for each request. Throughput is lower by this share", turnaround),
		Action: "give the client its own core",
		value: func(s *Summary) (float64, bool) {
			if s.Idle == nil {
				return 0, false
			}
			return s.Idle.Excess, true
		},
		text: func(s *Summary, v float64) string {
			return fmt.Sprintf("free slots stayed empty for %s of the time, so throughput is %s instead of %s req/s",
				Percent(v), Brief(s.Throughput.RequestsPerS), Brief(s.Throughput.RequestsPerS/max(1-s.Idle.Share, 1e-9)))
		},
	},
	{
		Code: "turnaround", Unit: "share", Note: maxIdle, Degraded: never, Invalid: never,
		Doc:    "in a closed loop: time in which slots were empty / time of all slots",
		Action: "raise --max-concurrency until throughput stops rising",
		value: func(s *Summary) (float64, bool) {
			if s.Idle == nil || s.Idle.Excess > maxIdle {
				return 0, false
			}
			return s.Idle.Share, true
		},
		text: func(s *Summary, v float64) string {
			return fmt.Sprintf("slots were empty for %s of the time, %s between an answer and the next request", Percent(v), Duration(s.Idle.Millis))
		},
	},
}
