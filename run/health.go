package run

import (
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"time"

	"tacho/metric"
)

// health watches the client itself while a level runs: a load generator that
// is short of processor time measures itself.
type health struct {
	began time.Time
	cpu   float64
	waits *metrics.Float64Histogram
}

// The thresholds above which the client's own state is a reason.
const (
	busyDegraded = 0.85 // share of the machine's processors used by the client alone
	waitDegraded = 0.02 // seconds a goroutine ready to run waited, at p99
)

const schedulerWaits = "/sched/latencies:seconds"

func newHealth() *health {
	return &health{began: time.Now(), cpu: processSeconds(), waits: readWaits()}
}

func readWaits() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: schedulerWaits}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return nil
	}
	return s[0].Value.Float64Histogram()
}

// reasons are what is known against the level.
func (h *health) reasons() []metric.Reason {
	var out []metric.Reason
	passed := time.Since(h.began).Seconds()
	if busy := (processSeconds() - h.cpu) / passed / float64(runtime.NumCPU()); passed > 1 && busy > busyDegraded {
		out = append(out, metric.Reason{
			Code: "client-cpu", Level: metric.Degraded,
			Text: fmt.Sprintf("the client used %.0f %% of this machine's processors: the server may have waited for it; give it a machine of its own", 100*busy),
		})
	}
	if wait := quantileSince(h.waits, readWaits(), 0.99); wait > waitDegraded {
		out = append(out, metric.Reason{
			Code: "client-scheduling", Level: metric.Note,
			Text: fmt.Sprintf("one in a hundred of the client's wake-ups waited more than %.0f ms for a processor: the machine is busy", 1e3*wait),
		})
	}
	return out
}

// quantileSince is the quantile of what a histogram has gained; 0 if nothing.
func quantileSince(before, after *metrics.Float64Histogram, q float64) float64 {
	if before == nil || after == nil || len(before.Counts) != len(after.Counts) {
		return 0
	}
	var total uint64
	for i := range after.Counts {
		total += after.Counts[i] - before.Counts[i]
	}
	var seen uint64
	for i := range after.Counts {
		if seen += after.Counts[i] - before.Counts[i]; total > 0 && float64(seen) >= q*float64(total) {
			if low := after.Buckets[i]; !math.IsInf(low, -1) {
				return low
			}
			return 0
		}
	}
	return 0
}
