package report

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tacho-bench/tacho/metric"
)

// shownGroups is the maximum number of lines in a table of groups. The JSON is complete.
const shownGroups = 40

// groups writes the counts of conversations, and a table for each kind of group: by
// turn, by label.
func (p *printer) groups(s *metric.Summary) {
	if c := s.Sessions; c != nil {
		p.section("Conversations")
		p.fact("Started/completed/cut short:", fmt.Sprintf("%d / %d / %d", c.Begun, c.Completed, c.CutShort))
		if c.Unsent > 0 {
			p.fact("  turns never sent:", strconv.Itoa(c.Unsent))
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

func (p *printer) groupTable(groups []metric.Group) {
	p.section("By " + safe(groups[0].By))
	table := [][]string{{safe(groups[0].By), "ok", "failed", "in tok", "cached %", "out tok", "mean TTFT", "p99 TTFT", "mean TPOT", "mean E2EL"}}
	for i := range groups[:min(len(groups), shownGroups)] {
		g := &groups[i]
		table = append(table, []string{
			safe(g.Value), strconv.Itoa(g.Completed), strconv.Itoa(g.Failed),
			strconv.Itoa(g.Input), share(g.CachedShare()), strconv.Itoa(g.Output),
			ofGroup(g.Dist(metric.TTFT), mean), ofGroup(g.Dist(metric.TTFT), p99), ofGroup(g.Dist(metric.TPOT), mean), ofGroup(g.Dist(metric.E2EL), mean),
		})
	}
	p.table(measuredColumns(table))
	if more := len(groups) - shownGroups; more > 0 {
		p.line(fmt.Sprintf("(%d more in tacho report --format json)", more))
	}
}

// measuredColumns leaves out the columns of a table in which nothing was measured.
func measuredColumns(table [][]string) [][]string {
	out := make([][]string, len(table))
	for i := range table[0] {
		if slices.ContainsFunc(table[1:], func(line []string) bool { return line[i] != notMeasured }) {
			for k, line := range table {
				out[k] = append(out[k], line[i])
			}
		}
	}
	return out
}

// ofGroup formats a statistic of a group.
func ofGroup(d metric.Dist, of func(*metric.Stats) float64) string {
	if d.Stats == nil {
		return notMeasured
	}
	v := of(d.Stats)
	return fixed(&v)
}

func mean(s *metric.Stats) float64 { return s.Mean }
func p99(s *metric.Stats) float64  { return s.Percentile(99) }
