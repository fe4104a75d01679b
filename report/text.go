package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/sanitize"
	"github.com/tacho-bench/tacho/internal/termtext"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
)

// Text is the name of the text format.
const Text = "text"

var textFormat = Format{
	Name: Text, Ext: "txt", Doc: "for people: the classic block, details of the measurement, and a table of all levels",
	Render: renderText,
}

// notMeasured is printed in place of a number that was not measured.
const notMeasured = metric.Unknown

func renderText(w io.Writer, r *Report) error {
	style, err := styleNamed(r.Style)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w) // keeps the first error for Flush
	p := &printer{out: out, wrap: r.Wrap, brief: r.Brief}
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

// TextLevel writes one level of the only run of a report in the text format, for callers
// that print levels as they finish. The levels format then completes the text.
func TextLevel(w io.Writer, r *Report, level *outcome.Level) error {
	style, err := styleNamed(r.Style)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	p := &printer{out: out, wrap: r.Wrap, brief: r.Brief}
	p.level(&r.Runs[0], level, style)
	return out.Flush()
}

// ClassicLevel writes the name and the classic block of one level, for callers that
// print levels as they finish.
func ClassicLevel(w io.Writer, r *Report, level *outcome.Level) error {
	style, err := styleNamed(r.Style)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	p := &printer{out: out}
	p.title(level)
	p.line(joinLines(classicLines(&level.Summary, style)))
	p.line("")
	return out.Flush()
}

func (p *printer) title(level *outcome.Level) {
	if level.Name != "" {
		p.line("# " + safe(level.Name))
	}
}

// level writes the verdict and the conclusion of a level, its classic block and the
// details.
func (p *printer) level(run *outcome.Run, level *outcome.Level, style int) {
	p.title(level)
	p.verdict(run, level)
	p.line("")
	p.line(joinLines(classicLines(&level.Summary, style)))
	p.behind(run, level)
	p.line("")
}

// about writes the model, the server, the GPUs and the dataset.
func (p *printer) about(a *outcome.About) {
	for _, f := range []outcome.Field{
		{Name: "Model:", Value: a.Model}, {Name: "Server:", Value: strings.Join(a.URLs, ", ")}, {Name: "GPUs:", Value: a.GPUs}, {Name: "Dataset:", Value: a.Dataset},
	} {
		if f.Value != "" {
			p.fact(f.Name, safe(f.Value))
		}
	}
}

// A printer writes lines. Its writer keeps the first error.
type printer struct {
	out     *bufio.Writer
	wrap    int    // maximum width of sentences and facts; 0 means unlimited
	brief   bool   // omit the details
	gap     string // between the columns of a table; empty means a margin
	heading string // of the section, until its first line is written
	part    string // of the report, until its first line is written
}

func (p *printer) line(text string) {
	if p.part != "" {
		_, _ = p.out.WriteString(centre(p.part, "=", blockWidth) + "\n")
		p.part = ""
	}
	if p.heading != "" {
		_, _ = p.out.WriteString(centre(p.heading, "-", blockWidth) + "\n")
		p.heading = ""
	}
	_, _ = p.out.WriteString(text + "\n")
}

// section starts a section. Its heading is written before its first line, so that a
// section without lines has none.
func (p *printer) section(name string) { p.heading = name }

// leastValue is the least width of a value beside its label. If there is less room, the
// lines after the first start near the margin.
const leastValue = 30

// fact writes a label and a value aligned with the lines of the classic block, unless nothing was measured.
func (p *printer) fact(label, value string) {
	if strings.Trim(value, notMeasured+" -") == "" {
		return
	}
	indent := labelWidth + 1
	if p.wrap-indent < leastValue {
		indent = 2 * len(margin)
	}
	p.wrapped(fmt.Sprintf("%-*s ", labelWidth, label), value, strings.Repeat(" ", indent))
}

// detail writes a fact that a brief report omits.
func (p *printer) detail(label, value string) {
	if !p.brief {
		p.fact(label, value)
	}
}

// margin is the indentation of reasons and of wrapped lines.
const margin = "  "

// wrapped writes head and text in lines that fit. The lines after the first start with
// indent.
func (p *printer) wrapped(head, text, indent string) {
	for i, line := range termtext.Hang(head, text, indent, p.wrap) {
		if i > 0 || line != "" {
			p.line(line)
		}
	}
}

// estimates writes which percentiles are estimated, and their error bound.
func (p *printer) estimates(s *metric.Summary) {
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
		p.fact("Percentile error bound (%):", fmt.Sprintf("%s for %s (estimated, because there are too many values to keep)", metric.Brief(100*worst), strings.Join(names, ", ")))
	}
}

// bounds writes the bounds of percentiles whose timestamps are not exact.
func (p *printer) bounds(s *metric.Summary) {
	for _, m := range metric.Classic {
		stats := s.Classic(m)
		for _, v := range s.Config.Percentiles {
			b := stats.Bound(v)
			if b.High-b.Low > 0.002*b.High { // a narrower bound says nothing
				p.fact(fmt.Sprintf("P%s %s bounds (ms):", percentileWord(v), strings.ToUpper(m.Name)), fixed(&b.Low)+" to "+fixed(&b.High))
			}
		}
	}
}

// behind writes what the classic block does not show. A brief report has only the lines
// that matter for this run: what was measured, and what is unusual about it.
func (p *printer) behind(run *outcome.Run, level *outcome.Level) {
	s := &level.Summary
	p.part = " Behind the Numbers "
	p.about(run.Of(level))
	p.schedule(s)
	p.section("Clock")
	p.fact("Arrival timestamps from:", clockWords(&s.Clock))
	p.detail("Read lag p50/p99/max (ms):", spread(s, metric.ReadLag))
	if shared := s.CoalescedShare(); !p.brief || shared != nil && *shared > 0 {
		p.fact("Token events read late (%):", share(shared))
	}
	p.bounds(s)
	p.estimates(s)
	p.stalls(s)
	p.intervals(s)
	p.ranges(s)
	p.steady(s)
	p.section("Token Counts")
	p.tokens(&s.Tokens)
	p.events(s)
	p.finishes(s.Finishes)
	p.server(s)
	p.where(s.Where)
	p.cost(s)
	p.endpoints(s)
	p.agents(s.Config.Agents)
	if len(s.Failures) > 0 || s.Canceled > 0 {
		p.section("Failures")
		p.failures(s)
	}
	p.groups(s)
	p.heading = ""
	if p.part == "" {
		p.line(strings.Repeat("=", blockWidth))
	}
	p.part = ""
}

// stalls writes the number of stalls between tokens, if there were any.
func (p *printer) stalls(s *metric.Summary) {
	if s.Stalled == 0 || s.Dist(metric.Stalls).Stats == nil || s.Dist(metric.LongestGap).Stats == nil { // a summary of a stranger may contradict itself
		return
	}
	gaps, threshold := s.Dist(metric.Stalls), cmp.Or(s.Config.StallMillis, metric.DefaultStallMillis)
	p.fact(fmt.Sprintf("Stalls of more than %g ms:", threshold), fmt.Sprintf("%s in %d of %d requests, the longest %s ms",
		metric.Brief(math.Round(gaps.Stats.Mean*float64(gaps.N))), s.Stalled, gaps.N, fixed(&s.Dist(metric.LongestGap).Stats.Max)))
}

// cost writes the cost of tokens if the price is known.
func (p *printer) cost(s *metric.Summary) {
	if s.Config.GPUPrice == 0 {
		return
	}
	p.section("Cost")
	if s.Config.GPUs == 0 {
		p.fact("Cost:", notMeasured+": set the number of GPUs (--gpus 8xH100)")
		return
	}
	p.fact("GPUs, price per GPU-hour:", metric.Setting(s.Config.GPUs)+", "+metric.Setting(s.Config.GPUPrice))
	for _, f := range metric.Figures {
		if v, known := s.Figures[f.Name]; known && f.Unit == metric.PerMillion {
			p.fact(f.Title+":", metric.Brief(v))
		}
	}
}

// clockWords names the clock of arrivals and counts the timestamps that the wire clock
// missed.
func clockWords(c *metric.ClockUse) string {
	if c.Wire == 0 {
		return c.Name
	}
	text := fmt.Sprintf("%s; %d of %d timestamps fell back", c.Name, c.FellBack, c.WireTimes)
	if others := c.Kernel + c.Read; others > 0 {
		text += fmt.Sprintf(", and %d requests used another clock", others)
	}
	return text
}

// dueShown is the smallest share by which a latency from the due time exceeds the latency
// from sending for a brief report to show it.
const dueShown = 0.05

// waited reports whether requests waited in the client before they were sent.
func waited(s *metric.Summary) bool {
	sent, due := s.Dist(metric.TTFT).Stats, s.Dist(metric.TTFTDue).Stats
	return s.Config.Unsent > 0 || sent != nil && due != nil && due.Percentile(99) > (1+dueShown)*sent.Percentile(99)
}

func (p *printer) schedule(s *metric.Summary) {
	p.detail("Client lag p50/p99/max (ms):", spread(s, metric.Lag))
	if s.Config.MaxConcurrency > 0 {
		p.detail("  wait for a concurrency slot:", spread(s, metric.Queue))
		p.detail("  send delay after the slot:", spread(s, metric.SendLag))
	}
	if d := s.Drift; d != nil {
		p.detail("  mean of the first/last tenth:", fixed(&d.FirstTenthMillis)+" / "+fixed(&d.LastTenthMillis))
	}
	if !p.brief || waited(s) {
		p.fact("TTFT from due time p50/p99/max (ms):", fromDue(s, metric.TTFTDue))
		p.fact("E2EL from due time p50/p99/max (ms):", fromDue(s, metric.E2ELDue))
	}
	if d := s.Dist(metric.TTFTContent); d.Stats != nil && d.Stats.Mean != s.Classic(metric.TTFT).Mean {
		p.fact("TTFT of content p50/p99/max (ms):", spread(s, metric.TTFTContent))
	}
	closed := s.Config.RequestRate <= 0 && s.LimitBound // the server sets its rate, which is the throughput
	if s.Rate != nil && s.Rate.ScheduledPerS != nil && !closed {
		p.detail("Request rate scheduled/sent (req/s):", fixed(s.Rate.ScheduledPerS)+" / "+fixed(s.Rate.AchievedPerS))
	}
	if u := s.Unsent(); u.Total() > 0 {
		p.fact("Requests planned/sent/never sent:", fmt.Sprintf("%d / %d / %d", u.Planned, s.Requests, u.Total()))
	}
	p.peaks(s)
	if s.Resent > 0 {
		p.fact("Requests resent after a failure:", strconv.Itoa(s.Resent))
	}
	if s.RetriedConns > 0 {
		p.fact("Requests resent on a new connection:", strconv.Itoa(s.RetriedConns))
	}
}

// peaks writes the exact peaks, and explains vLLM's peaks if they differ.
func (p *printer) peaks(s *metric.Summary) {
	if s.Peaks == nil {
		return
	}
	inFlight, tokens := strconv.Itoa(s.Peaks.InFlight), fixed(&s.Peaks.TokensPerS)
	if s.Peaks.InFlight == 0 { // results of other tools have only vLLM's peaks
		inFlight, tokens = notMeasured, notMeasured
	}
	if n := s.Peaks.TouchingASecond; n != s.Peaks.InFlight {
		inFlight += fmt.Sprintf(" (vLLM reports %d: it counts every request active in a second)", n)
	}
	if n := float64(s.Peaks.EventsPerS); fixed(&n) != tokens {
		tokens += fmt.Sprintf(" (vLLM reports %.0f: it counts events in fixed seconds)", n)
	}
	p.detail("Peak requests in flight:", inFlight)
	p.detail("Peak output in any second (tok/s):", tokens)
}

// events writes the tokens per event and the gaps, if an event had more than one token.
func (p *printer) events(s *metric.Summary) {
	if n := s.Dist(metric.TokensPerEvent).Stats; n != nil && n.Max > 1 {
		p.fact("Tokens per event p50/p99/max:", spread(s, metric.TokensPerEvent))
		p.fact("Gap by event p50/p99/max (ms):", spread(s, metric.ITL))
		p.fact("Gap by token p50/p99/max (ms):", spread(s, metric.TokenGap))
	}
}

func (p *printer) tokens(t *metric.Tokens) {
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
			source = tacho.CountSource("unknown")
		}
		output = append(output, fmt.Sprintf("%s (%d)", source, c.Requests))
	}
	p.detail("Input tokens counted by (requests):", strings.Join(input, ", "))
	if !p.brief || len(t.OutputBy) > 1 || len(t.OutputBy) == 1 && t.OutputBy[0].Source != tacho.FromUsage {
		p.fact("Output tokens counted by (requests):", strings.Join(output, ", "))
	}
	if c := t.Prompt; c.Differ > 0 {
		p.fact("Prompts with another count by server:", fmt.Sprintf("%d of %d, worst %+d tokens", c.Differ, c.Requests, c.Worst))
	}
	if t.Short+t.Long > 0 {
		p.fact("Output length off (too short/too long):", fmt.Sprintf("%d / %d of %d", t.Short, t.Long, t.Exact))
	}
	if t.MoreEvents > 0 {
		p.fact("Requests with more events than tokens:", strconv.Itoa(t.MoreEvents))
	}
	if t.Cached > 0 {
		p.fact("Input tokens cached by the server:", strconv.Itoa(t.Cached))
	}
	if t.Reasoning > 0 {
		p.fact("Reasoning output tokens:", strconv.Itoa(t.Reasoning))
	}
}

func (p *printer) failures(s *metric.Summary) {
	for _, f := range s.Failures {
		cause := safe(string(f.Cause))
		if f.Phase != "" {
			cause += " in phase " + safe(f.Phase)
		}
		if f.Status != 0 {
			cause += " " + strconv.Itoa(f.Status)
		}
		p.fact(cause+":", fmt.Sprintf("%d, first at %s s", f.Count, fixed(&f.FirstS)))
		p.wrapped(margin, safe(f.Example), margin)
	}
	if s.Canceled > 0 {
		p.fact("canceled when the run was stopped:", strconv.Itoa(s.Canceled))
	}
}

// notes writes the notes on the run. It reports whether there were any.
func (p *printer) notes(list []metric.Reason) bool {
	if len(list) > 0 {
		p.line("Notes on the run:")
		p.reasons(list)
	}
	return len(list) > 0
}

// verdict writes the verdict on a level, its conclusion and the reasons, worst first.
func (p *printer) verdict(run *outcome.Run, level *outcome.Level) {
	v := &level.Summary.Verdict
	words := []string{string(v.Severity)}
	if run.Simulated() {
		words = append(words, outcome.SimulatedWord)
	}
	p.line("Verdict: " + strings.Join(words, ", "))
	text := strings.Join(conclusion.OfLevels([]outcome.Level{*level}).Text, " ")
	if after, repeats := strings.CutPrefix(text, string(v.Severity)+": "); repeats && v.Severity != metric.Predicted {
		text = strings.ToUpper(after[:1]) + after[1:]
	}
	p.wrapped("", safe(text), "")
	p.reasons(slices.SortedStableFunc(slices.Values(v.Reasons), func(a, b metric.Reason) int { return rank(a.Severity) - rank(b.Severity) }))
}

func (p *printer) reasons(list []metric.Reason) {
	for _, r := range list {
		p.wrapped(fmt.Sprintf("%s%-9s%s: ", margin, strings.ToLower(string(r.Severity)), safe(r.Code)), safe(r.Text), strings.Repeat(margin, 2))
	}
}

// levels writes one line per level.
func (p *printer) levels(runs []outcome.Run) error {
	table := summaryTable(runs)
	lines, err := table.strings(false)
	if err != nil {
		return err
	}
	p.levelTable(&table, lines)
	p.repeats(runs)
	return nil
}

// levelTable writes a table of levels and explains its marks.
func (p *printer) levelTable(t *table, lines [][]string) {
	if text := t.withoutIntervals(); text != "" {
		p.wrapped("", text, "")
	}
	p.table(lines)
	for _, line := range markLegend(lines) {
		p.line(line)
	}
}

// table writes columns as wide as their widest cell. The last column is left-aligned,
// the others right-aligned. The last column is wrapped if it does not fit.
func (p *printer) table(cells [][]string) {
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, cell := range line {
			widths[i] = max(widths[i], termtext.Width(cell))
		}
	}
	gap := cmp.Or(p.gap, margin)
	for _, line := range cells {
		var b strings.Builder
		for i, cell := range line[:len(line)-1] {
			b.WriteString(strings.Repeat(" ", widths[i]-termtext.Width(cell)) + cell + gap)
		}
		head := b.String()
		if wide := termtext.Width(head); p.wrap-wide >= leastValue {
			p.wrapped(head, line[len(line)-1], strings.Repeat(" ", wide))
			continue
		}
		p.line(head + line[len(line)-1])
	}
}

// spread formats the median, the 99th percentile and the maximum of a metric.
func spread(s *metric.Summary, m *metric.Metric) string {
	stats := s.Dist(m).Stats
	if stats == nil {
		return notMeasured
	}
	p99 := stats.Percentile(99)
	return fixed(&stats.Median) + " / " + fixed(&p99) + " / " + fixed(&stats.Max)
}

// fromDue formats the spread of a latency from the due time. If requests were never
// sent, each figure is a lower bound, because these requests would have waited longer.
func fromDue(s *metric.Summary, m *metric.Metric) string {
	text := spread(s, m)
	if s.Config.Unsent > 0 && text != notMeasured {
		text = "> " + strings.ReplaceAll(text, " / ", " / > ")
	}
	return text
}

func fixed(v *float64) string {
	switch {
	case v == nil:
		return notMeasured
	case !(math.Abs(*v) < 1e15):
		return metric.Brief(*v)
	}
	return strconv.FormatFloat(*v, 'f', 2, 64)
}

// share formats a fraction as a percentage.
func share(v *float64) string {
	if v == nil {
		return notMeasured
	}
	percentage := 100 * *v
	return fixed(&percentage)
}

// safeLimit is the maximum number of bytes printed of a string from outside.
const safeLimit = 300

// safe escapes and shortens a string from outside to one printable line.
func safe(text string) string {
	text = sanitize.Line(text)
	if len(text) <= safeLimit {
		return text
	}
	cut := safeLimit
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}
