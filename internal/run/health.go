package run

import (
	"math"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/metric"
)

// health monitors the client during a level, because a load generator without
// enough CPU time measures itself. Package metric has the rules for its
// findings.
type health struct {
	began  time.Time
	cpu    float64
	stolen processorTime
	waits  *metrics.Float64Histogram
	gc     *metrics.Float64Histogram
	heart  *heartbeat
	quota  quota
}

const (
	schedulerWaits = "/sched/latencies:seconds"
	gcPauses       = "/sched/pauses/total/gc:seconds"
)

// newHealth starts monitoring. It returns nil if the run does not use the
// kernel's network, because time may be virtual then.
func (r *Runner) newHealth() *health {
	if r.env.Dial != nil {
		return &health{}
	}
	return newHealth()
}

func newHealth() *health {
	h := &health{began: time.Now(), cpu: processSeconds(), waits: readHistogram(schedulerWaits), gc: readHistogram(gcPauses)}
	h.stolen, _ = readStolen()
	h.quota = readQuota()
	h.heart = startHeartbeat()
	return h
}

func readHistogram(name string) *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return nil
	}
	return s[0].Value.Float64Histogram()
}

// end stops monitoring and returns the findings.
func (h *health) end() *metric.Client {
	if h == nil {
		return nil // not started
	}
	if h.heart == nil {
		return &metric.Client{}
	}
	return h.with(h.heart.end())
}

// soFar returns the findings up to now.
func (h *health) soFar() *metric.Client {
	if h.heart == nil {
		return &metric.Client{}
	}
	return h.with(h.heart.soFar())
}

func (h *health) with(pauses metric.Pauses) *metric.Client {
	c := &metric.Client{
		BusyShare:  (processSeconds() - h.cpu) / time.Since(h.began).Seconds() / float64(runtime.NumCPU()),
		WakeMillis: 1e3 * quantileSince(h.waits, readHistogram(schedulerWaits), 0.99),
		GCMillis:   1e3 * quantileSince(h.gc, readHistogram(gcPauses), 1),
		Pauses:     pauses,
	}
	if now := readQuota(); now.cores > 0 {
		c.QuotaCores, c.ThrottledS = now.cores, max(now.throttled-h.quota.throttled, 0).Seconds()
	}
	if now, ok := readStolen(); ok {
		c.StolenShare = stolenShare(h.stolen, now)
	}
	return c
}

// quantileSince returns a quantile of the values added to a histogram, or 0 if
// there are none.
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

// processorTime is CPU time of the whole machine in ticks.
type processorTime struct{ all, stolen uint64 }

// parseStolen parses the first line of Linux's /proc/stat: user, nice, system,
// idle, iowait, irq, softirq, steal. Later fields are included in user and
// nice.
func parseStolen(page string) (t processorTime, ok bool) {
	line, _, _ := strings.Cut(page, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return t, false
	}
	for i, field := range fields[1:9] {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return t, false
		}
		t.all += n
		if i == 7 {
			t.stolen = n
		}
	}
	return t, true
}

func stolenShare(before, after processorTime) float64 {
	if after.all <= before.all {
		return 0
	}
	return float64(after.stolen-before.stolen) / float64(after.all-before.all)
}
