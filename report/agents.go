package report

import (
	"fmt"
	"strconv"
	"time"

	"tacho/metric"
)

// agents writes a line for each of several load generators.
func (p printer) agents(all []metric.Agent) {
	if len(all) == 0 {
		return
	}
	p.line(centre("By Agent", "-", blockWidth))
	sum := 0
	for _, a := range all {
		sum += a.Requests
	}
	table := [][]string{{"requests", "share %", "p99 lag ms", "CPU %", "clock ms", "moved ms", "agent"}}
	for _, a := range all {
		table = append(table, []string{
			strconv.Itoa(a.Requests), fmt.Sprintf("%.1f", 100*float64(a.Requests)/float64(max(sum, 1))), fmt.Sprintf("%.2f", a.LagMillis),
			busy(a.Client), clockOf(&a), millis(a.Moved), safe(name(&a)),
		})
	}
	p.table(table)
}

func busy(c *metric.Client) string {
	if c == nil {
		return notMeasured
	}
	return fmt.Sprintf("%.0f", 100*c.BusyShare)
}

// clockOf is how far an agent's clock was off, and how well that is known.
func clockOf(a *metric.Agent) string {
	if a.SameClock {
		return "ours"
	}
	return fmt.Sprintf("%+.3f ± %.3f", float64(a.Offset)/1e6, float64(a.OffsetErr)/1e6)
}

func millis(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d)/1e6) }

// name is an agent, with its host where that is not its name, and what became of
// it.
func name(a *metric.Agent) string {
	out := a.Name
	if a.Host != "" && a.Host != a.Name {
		out += " (" + a.Host + ")"
	}
	if a.Missing != "" {
		out += ": not whole"
	}
	return out
}
