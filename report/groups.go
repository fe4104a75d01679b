package report

import (
	"fmt"
	"strconv"

	"tacho/metric"
)

// shownGroups is how many lines a table of groups has for people; the rest is
// in the JSON.
const shownGroups = 40

// groups writes what became of the conversations, and a table for each way in
// which the requests fall apart: by turn, by label.
func (p printer) groups(s *metric.Summary) {
	if c := s.Sessions; c != nil {
		p.line(centre("Conversations", "-", blockWidth))
		p.fact("Begun/completed/cut short:", fmt.Sprintf("%d / %d / %d", c.Begun, c.Completed, c.CutShort))
		if c.Unsent > 0 {
			p.fact("  turns that were never sent:", strconv.Itoa(c.Unsent))
		}
	}
	for from := 0; from < len(s.Groups); {
		to := from
		for to < len(s.Groups) && s.Groups[to].By == s.Groups[from].By {
			to++
		}
		p.groupTable(s.Groups[from:to])
		from = to
	}
}

// groupTable writes the groups of one kind.
func (p printer) groupTable(groups []metric.Group) {
	p.line(centre("By "+safe(groups[0].By), "-", blockWidth))
	table := [][]string{{safe(groups[0].By), "ok", "failed", "in tok", "cached %", "out tok", "mean TTFT", "p99 TTFT", "mean TPOT", "mean E2EL"}}
	for i := range groups[:min(len(groups), shownGroups)] {
		g := &groups[i]
		table = append(table, []string{
			safe(g.Value), strconv.Itoa(g.Completed), strconv.Itoa(g.Failed),
			strconv.Itoa(g.Input), share(g.CachedShare()), strconv.Itoa(g.Output),
			ofGroup(g.Dist(metric.TTFT), mean), ofGroup(g.Dist(metric.TTFT), p99), ofGroup(g.Dist(metric.TPOT), mean), ofGroup(g.Dist(metric.E2EL), mean),
		})
	}
	p.table(table)
	if more := len(groups) - shownGroups; more > 0 {
		p.line(fmt.Sprintf("(%d more in tacho report --format json)", more))
	}
}

// ofGroup is a statistic of a group as people read it.
func ofGroup(d metric.Dist, of func(*metric.Stats) float64) string {
	if d.Stats == nil {
		return notMeasured
	}
	v := of(d.Stats)
	return fixed(&v)
}

func mean(s *metric.Stats) float64 { return s.Mean }
func p99(s *metric.Stats) float64  { return s.Percentile(99) }
