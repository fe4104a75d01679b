package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/report/conclusion"
)

// mermaid writes a chart in the language of Mermaid, which GitHub and GitLab draw, and what the reader must
// know about its values. Every text in it is a constant of tacho.
func (p *printer) mermaid(c *conclusion.Chart) {
	name := strings.ToUpper(c.Metric.Name) + " " + c.Statistic
	line := make([]string, len(c.Values))
	loads := make([]string, len(c.Values))
	doubts := map[metric.Severity][]string{}
	for i, v := range c.Values {
		line[i], loads[i] = plain(math.Round(v*1000)/1000), plain(c.Loads[i])
		if v := c.Verdicts[i]; v == metric.Degraded || v == metric.Predicted {
			doubts[v] = append(doubts[v], loads[i])
		}
	}
	// The first colour of Mermaid's own palette is hardly visible on white; these are on white and on black.
	p.line("```mermaid\n" + `%%{init: {"themeVariables": {"xyChart": {"plotColorPalette": "#2f80d0, #d0435f"}}}}%%`)
	p.line("xychart-beta\n    title \"" + name + " over the load\"")
	p.line("    x-axis \"" + c.Unit + "\" [\"" + strings.Join(loads, `", "`) + "\"]")
	p.line("    y-axis \"ms\" 0 --> " + plain(math.Ceil(1.1*max(slices.Max(c.Values), c.Limit, 1))))
	p.line("    line [" + strings.Join(line, ", ") + "]")
	if c.Limit > 0 {
		p.line("    line [" + strings.Join(slices.Repeat([]string{plain(c.Limit)}, len(line)), ", ") + "]")
	}
	p.line("```\n")
	if c.Limit > 0 {
		p.line("The horizontal line is the SLO of " + metric.Duration(c.Limit) + ".")
	}
	for _, v := range []metric.Severity{metric.Degraded, metric.Predicted} {
		if len(doubts[v]) > 0 {
			p.line(string(v) + ": " + strings.Join(doubts[v], ", ") + " " + c.Unit + ".")
		}
	}
	if c.Limit > 0 || len(doubts) > 0 {
		p.line("")
	}
}

// plain formats a number without an exponent, which Mermaid does not read.
func plain(v float64) string {
	if math.IsInf(v, 1) {
		return "inf"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
