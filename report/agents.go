package report

import (
	"strconv"
	"time"

	"github.com/tacho-bench/tacho/metric"
)

// agents writes a line for each agent of a distributed run.
func (p *printer) agents(all []metric.Agent) {
	if len(all) == 0 {
		return
	}
	p.section("By Agent")
	sum := 0
	for _, a := range all {
		sum += a.Requests
	}
	table := [][]string{{"requests", "share %", "p99 lag ms", "CPU %", "clock offset ms", "correction ms", "agent"}}
	for _, a := range all {
		table = append(table, []string{
			strconv.Itoa(a.Requests), metric.Brief(100 * float64(a.Requests) / float64(max(sum, 1))), metric.Brief(a.LagMillis),
			busy(a.Client), clockOf(&a), millis(a.Moved), safe(name(&a)),
		})
	}
	p.table(table)
}

func busy(c *metric.Client) string {
	if c == nil {
		return notMeasured
	}
	return metric.Brief(100 * c.BusyShare)
}

// clockOf returns the offset of an agent's clock and the error bound of the offset.
func clockOf(a *metric.Agent) string {
	if a.SameClock {
		return "same clock"
	}
	return metric.Signed(float64(a.Offset)/1e6) + " ± " + metric.Brief(float64(a.OffsetErr)/1e6)
}

func millis(d time.Duration) string { return metric.Brief(float64(d) / 1e6) }

// name returns the name of an agent, its host if the names differ, and a mark if its
// share is incomplete.
func name(a *metric.Agent) string {
	out := a.Name
	if a.Host != "" && a.Host != a.Name {
		out += " (" + a.Host + ")"
	}
	if a.Missing != "" {
		out += " (incomplete)"
	}
	return out
}
