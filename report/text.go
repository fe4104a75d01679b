package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"tacho"
	"tacho/internal/visible"
	"tacho/metric"
	"tacho/outcome"
)

// Text is the name of the format of the same name.
const Text = "text"

var textFormat = Format{
	Name: Text, Ext: "txt", Doc: "for people: the classic block, what is behind its numbers, and a table of all levels",
	Render: renderText,
}

// notMeasured stands where a number would be and nothing was measured.
const notMeasured = "n/a"

func renderText(w io.Writer, r *Report) error {
	style, err := styleNamed(r.Style)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w) // keeps the first error for Flush
	p := printer{out}
	for i := range r.Runs {
		run := &r.Runs[i]
		if len(r.Runs) > 1 {
			p.line("## " + safe(run.Name))
			p.line("")
		}
		for k := range run.Levels {
			p.level(run, &run.Levels[k], style)
		}
		if p.notes(run.Notes) {
			p.line("")
		}
		if len(run.Levels) > 1 && len(r.Runs) == 1 {
			if err := p.levels(r.Runs); err != nil {
				return err
			}
		}
	}
	if len(r.Runs) > 1 {
		if err := p.levels(r.Runs); err != nil {
			return err
		}
	}
	return out.Flush()
}

// TextLevel writes one level of a run as the text format does, for those who
// show levels as they end. The format levels then ends the text.
func TextLevel(w io.Writer, run *outcome.Run, level *outcome.Level, styleName string) error {
	style, err := styleNamed(styleName)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	printer{out}.level(run, level, style)
	return out.Flush()
}

func (p printer) level(run *outcome.Run, level *outcome.Level, style int) {
	if level.Name != "" {
		p.line("# " + safe(level.Name))
	}
	p.line(joinLines(classicLines(&level.Summary, style)))
	p.behind(run.Of(level), &level.Summary)
	p.line("")
}

// about writes what was measured.
func (p printer) about(a *outcome.About) {
	for _, f := range []outcome.Field{
		{Name: "Model:", Value: a.Model}, {Name: "Server:", Value: strings.Join(a.URLs, ", ")}, {Name: "GPUs:", Value: a.GPUs}, {Name: "Dataset:", Value: a.Dataset},
	} {
		if f.Value != "" {
			p.fact(f.Name, safe(f.Value))
		}
	}
}

// A printer writes lines; the writer under it keeps the first error.
type printer struct{ out *bufio.Writer }

func (p printer) line(text string) { _, _ = p.out.WriteString(text + "\n") }

// fact writes one line aligned with those of the classic block.
func (p printer) fact(label, value string) {
	p.line(fmt.Sprintf("%-*s %s", labelWidth, label, value))
}

// estimates says which figures are not exact, and how near they are.
func (p printer) estimates(s *metric.Summary) {
	var names []string
	worst := 0.0
	for _, d := range s.Dists {
		if d.Stats != nil && d.Stats.Error > 0 {
			names, worst = append(names, d.Name), max(worst, d.Stats.Error)
		}
	}
	if more := len(names) - 4; more > 0 {
		names = append(names[:4], fmt.Sprintf("%d more", more))
	}
	if len(names) > 0 {
		p.fact("Percentiles are within (%):", fmt.Sprintf("%.3f of %s (more values than are kept one by one)", 100*worst, strings.Join(names, ", ")))
	}
}

// boundShown is the least that a bound is wide, as a part of its percentile, to
// be worth a line.
const boundShown = 0.002

// bounds says what percentiles lie between, where their times are not exact.
func (p printer) bounds(s *metric.Summary) {
	for _, m := range metric.Classic {
		stats := s.Classic(m)
		for _, v := range s.Config.Percentiles {
			b := stats.Bound(v)
			if b.High-b.Low > boundShown*b.High {
				p.fact(fmt.Sprintf("P%s %s is within (ms):", percentileWord(v), strings.ToUpper(m.Name)), fixed(&b.Low)+" to "+fixed(&b.High))
			}
		}
	}
}

// behind writes what the classic block does not say.
func (p printer) behind(a *outcome.About, s *metric.Summary) {
	p.line(centre(" Behind the Numbers ", "=", blockWidth))
	p.about(a)
	p.schedule(s)
	p.line(centre("Clock", "-", blockWidth))
	p.fact("Arrivals stamped by:", orNotMeasured(clockWords(&s.Clock)))
	p.fact("Read lag p50/p99/max (ms):", spread(s, metric.ReadLag))
	p.fact("Coalesced token events (%):", share(s.CoalescedShare()))
	p.bounds(s)
	p.estimates(s)
	p.stalls(s)
	p.sure(s)
	p.ranges(s)
	p.steady(s)
	p.line(centre("Token Counts", "-", blockWidth))
	p.tokens(&s.Tokens)
	p.events(s)
	p.finishes(s.Finishes)
	p.server(s)
	p.where(s.Where)
	p.cost(s)
	p.endpoints(s)
	p.agents(s.Config.Agents)
	if len(s.Failures) > 0 || s.Canceled > 0 {
		p.line(centre("Failures", "-", blockWidth))
		p.failures(s)
	}
	p.groups(s)
	p.line(centre("Verdict", "-", blockWidth))
	p.verdict(&s.Verdict)
	p.line(strings.Repeat("=", blockWidth))
}

// stalls writes how often answers stood still, where one did.
func (p printer) stalls(s *metric.Summary) {
	if s.Stalled == 0 {
		return
	}
	gaps, threshold := s.Dist(metric.Stalls), cmp.Or(s.Config.StallMillis, metric.DefaultStallMillis)
	p.fact(fmt.Sprintf("Stalls of more than %g ms:", threshold), fmt.Sprintf("%.0f in %d of %d requests, the longest %s ms",
		gaps.Stats.Mean*float64(gaps.N), s.Stalled, gaps.N, fixed(&s.Dist(metric.LongestGap).Stats.Max)))
}

// cost writes what tokens cost, where the price is known.
func (p printer) cost(s *metric.Summary) {
	if s.Config.GPUPrice == 0 {
		return
	}
	p.line(centre("Cost", "-", blockWidth))
	if s.Config.GPUs == 0 {
		p.fact("Cost:", notMeasured+": say how many GPUs there are (--gpus 8xH100)")
		return
	}
	p.fact("GPUs, price of each per hour:", fmt.Sprintf("%.4g, %g", s.Config.GPUs, s.Config.GPUPrice))
	for _, f := range metric.Figures {
		if v, known := s.Figures[f.Name]; known && f.Unit == metric.PerMillion {
			p.fact(f.Title+":", fmt.Sprintf("%.4g", v))
		}
	}
}

// clockWords says what stamped arrivals, and what the wire clock missed.
func clockWords(c *metric.ClockUse) string {
	if c.Wire == 0 {
		return c.Name
	}
	text := fmt.Sprintf("%s; %d of %d times fell back", c.Name, c.FellBack, c.WireTimes)
	if others := c.Kernel + c.Read; others > 0 {
		text += fmt.Sprintf(", and %d requests had another clock", others)
	}
	return text
}

func (p printer) schedule(s *metric.Summary) {
	p.fact("Client lag p50/p99/max (ms):", spread(s, metric.Lag))
	if s.Config.MaxConcurrency > 0 {
		p.fact("  waiting for the limit:", spread(s, metric.Queue))
		p.fact("  sending after that:", spread(s, metric.SendLag))
	}
	if d := s.Drift; d != nil {
		p.fact("  first/last tenth, mean:", fixed(&d.FirstTenthMillis)+" / "+fixed(&d.LastTenthMillis))
	}
	p.fact("TTFT from due p50/p99/max (ms):", fromDue(s, metric.TTFTDue))
	p.fact("E2EL from due p50/p99/max (ms):", fromDue(s, metric.E2ELDue))
	if d := s.Dist(metric.TTFTContent); d.Stats != nil && d.Stats.Mean != s.Classic(metric.TTFT).Mean {
		p.fact("TTFT of content p50/p99/max (ms):", spread(s, metric.TTFTContent))
	}
	if s.Rate != nil && s.Rate.ScheduledPerS != nil { // a burst has no schedule
		p.fact("Request rate scheduled/sent (req/s):", fixed(s.Rate.ScheduledPerS)+" / "+fixed(s.Rate.AchievedPerS))
	}
	if s.Config.Unsent > 0 {
		p.fact("Requests due/sent/never sent:", fmt.Sprintf("%d / %d / %d", s.Requests+s.Config.Unsent, s.Requests, s.Config.Unsent))
	}
	p.peaks(s)
	if s.Resent > 0 {
		p.fact("Requests sent again after a failure:", strconv.Itoa(s.Resent))
	}
	if s.RetriedConns > 0 {
		p.fact("Requests on a second connection:", strconv.Itoa(s.RetriedConns))
	}
}

// peaks writes the exact peaks, with a word where the classic ones say otherwise.
func (p printer) peaks(s *metric.Summary) {
	if s.Peaks == nil {
		p.fact("Most requests in flight at once:", notMeasured)
		return
	}
	inFlight, tokens := strconv.Itoa(s.Peaks.InFlight), fixed(&s.Peaks.TokensPerS)
	if s.Peaks.InFlight == 0 { // a result that others wrote has their peaks alone
		inFlight, tokens = notMeasured, notMeasured
	}
	if n := s.Peaks.TouchingASecond; n != s.Peaks.InFlight {
		inFlight += fmt.Sprintf(" (vLLM's peak of %d is of all that touch one second)", n)
	}
	if n := float64(s.Peaks.EventsPerS); fixed(&n) != tokens {
		tokens += fmt.Sprintf(" (vLLM's peak of %.0f is of events, in fixed seconds)", n)
	}
	p.fact("Most requests in flight at once:", inFlight)
	p.fact("Most output in any second (tok/s):", tokens)
}

// events writes how tokens came in events, where some came together.
func (p printer) events(s *metric.Summary) {
	if n := s.Dist(metric.TokensPerEvent).Stats; n != nil && n.Max > 1 {
		p.fact("Tokens per event p50/p99/max:", spread(s, metric.TokensPerEvent))
		p.fact("Gap by event p50/p99/max (ms):", spread(s, metric.ITL))
		p.fact("Gap by token p50/p99/max (ms):", spread(s, metric.TokenGap))
	}
}

func (p printer) tokens(t *metric.Tokens) {
	var input, output []string
	if t.InputByServer > 0 {
		input = append(input, fmt.Sprintf("server (%d)", t.InputByServer))
	}
	if t.InputByWorkload > 0 {
		input = append(input, fmt.Sprintf("workload (%d)", t.InputByWorkload))
	}
	for _, c := range t.OutputBy {
		source := c.Source
		if source == "" {
			source = tacho.CountSource("nobody")
		}
		output = append(output, fmt.Sprintf("%s (%d)", source, c.Requests))
	}
	p.fact("Input counted by (requests):", orNotMeasured(strings.Join(input, ", ")))
	p.fact("Output counted by (requests):", orNotMeasured(strings.Join(output, ", ")))
	if c := t.Prompt; c.Differ > 0 {
		p.fact("Prompts counted otherwise by the server:", fmt.Sprintf("%d of %d, worst %+d tokens", c.Differ, c.Requests, c.Worst))
	}
	if t.Short+t.Long > 0 {
		p.fact("Exact outputs too short/too long:", fmt.Sprintf("%d / %d of %d", t.Short, t.Long, t.Exact))
	}
	if t.MoreEvents > 0 {
		p.fact("Requests with more events than tokens:", strconv.Itoa(t.MoreEvents))
	}
	if t.Cached > 0 {
		p.fact("Input tokens cached by the server:", strconv.Itoa(t.Cached))
	}
	if t.Reasoning > 0 {
		p.fact("Output tokens that are reasoning:", strconv.Itoa(t.Reasoning))
	}
}

func (p printer) failures(s *metric.Summary) {
	for _, f := range s.Failures {
		cause := safe(string(f.Cause))
		if f.Phase != "" {
			cause += " in phase " + safe(f.Phase)
		}
		if f.Status != 0 {
			cause += " " + strconv.Itoa(f.Status)
		}
		p.fact(cause+":", fmt.Sprintf("%d, first at %.2f s", f.Count, f.FirstS))
		p.line("  " + safe(f.Example))
	}
	if s.Canceled > 0 {
		p.fact("canceled when the run was stopped:", strconv.Itoa(s.Canceled))
	}
}

// notes writes what is to be said of a run as a whole, if there is something.
func (p printer) notes(list []metric.Reason) bool {
	if len(list) > 0 {
		p.line("Of the run:")
		p.reasons(list)
	}
	return len(list) > 0
}

func (p printer) verdict(v *metric.Verdict) {
	p.fact("Verdict:", string(v.Severity))
	p.reasons(v.Reasons)
}

func (p printer) reasons(list []metric.Reason) {
	for _, r := range list {
		p.line(fmt.Sprintf("  %-9s%s: %s", strings.ToLower(string(r.Severity)), safe(r.Code), safe(r.Text)))
	}
}

// levels writes one line for each level: the runs at a glance.
func (p printer) levels(runs []outcome.Run) error {
	table := glance(runs)
	lines, err := table.strings(false)
	if err != nil {
		return err
	}
	p.levelTable(lines)
	p.repeats(runs)
	return nil
}

// levelTable writes a table of levels, and what its marks mean.
func (p printer) levelTable(lines [][]string) {
	p.table(lines)
	if marks(lines) {
		p.line(noIntervalWords)
	}
}

// table writes columns as wide as their widest cell, numbers to the right and
// the last column to the left.
func (p printer) table(cells [][]string) {
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range cells {
		var b strings.Builder
		for i, cell := range line[:len(line)-1] {
			fmt.Fprintf(&b, "%*s  ", widths[i], cell)
		}
		p.line(b.String() + line[len(line)-1])
	}
}

// spread is the median, the 99th percentile and the maximum of a metric.
func spread(s *metric.Summary, m *metric.Metric) string {
	stats := s.Dist(m).Stats
	if stats == nil {
		return notMeasured
	}
	p99 := stats.Percentile(99)
	return fixed(&stats.Median) + " / " + fixed(&p99) + " / " + fixed(&stats.Max)
}

// fromDue is spread of a latency from due. Requests that were never sent would
// have waited longer than the others, so each figure is a lower bound then.
func fromDue(s *metric.Summary, m *metric.Metric) string {
	text := spread(s, m)
	if s.Config.Unsent > 0 && text != notMeasured {
		text = "> " + strings.ReplaceAll(text, " / ", " / > ")
	}
	return text
}

func fixed(v *float64) string {
	if v == nil {
		return notMeasured
	}
	return strconv.FormatFloat(*v, 'f', 2, 64)
}

// share is a part of one as a percentage.
func share(v *float64) string {
	if v == nil {
		return notMeasured
	}
	percentage := 100 * *v
	return fixed(&percentage)
}

func orNotMeasured(text string) string {
	if text == "" {
		return notMeasured
	}
	return text
}

// safeLimit is how much of a foreign string is worth a reader's time.
const safeLimit = 300

// safe makes a foreign string fit to print, on one line.
func safe(text string) string {
	text = visible.Line(text)
	if len(text) <= safeLimit {
		return text
	}
	cut := safeLimit
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}
