package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/internal/termtext"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/report"
	"github.com/tacho-bench/tacho/report/conclusion"
	"github.com/tacho-bench/tacho/store"
)

// brief reports whether levels are printed in one line each, on one screen: if
// there are several and the user does not ask for more. This applies to running
// and stored runs.
func brief(several, verbose, styled bool) bool { return several && !verbose && !styled }

func (b *benchRun) brief() bool {
	p := &b.bench.Runner.Asked
	return brief(len(p.Levels()) > 1 || p.Swept() != "" || b.settings > 0, p.Verbose, p.Given("report-style"))
}

// blocks reports whether the block of vllm bench serve precedes the screen of several levels.
func (b *benchRun) blocks() bool { return b.env.vllm && !b.env.Terminal }

// present prints the results of the run and stores its reports.
func (b *benchRun) present(r *report.Report) error {
	err := errors.Join(b.showAll(r), b.bench.WriteFiles(r))
	if err == nil && !b.bench.Runner.Asked.Verbose {
		name := "Full report: "
		if b.brief() {
			name = "Full report, with the block of vllm bench serve for each level: "
		}
		b.Message(name + filepath.Join(b.bench.Keep.Dir(), store.TextFile))
	}
	if b.answer == nil && b.bench.Runner.Asked.FailIf == "" && b.env.Getenv("CI") == "" { // CI does not act on it
		b.Message(b.env.suggestion("Next, " + b.next()))
	}
	return err
}

// showAll prints all levels together. A single level has been printed already,
// unless more levels were planned.
func (b *benchRun) showAll(r *report.Report) error {
	b.env.fit(r)
	levels := b.bench.Outcome.Levels
	switch {
	case b.answer != nil:
		return b.answer()
	case len(levels) > 1 && b.bench.Runner.Asked.Given("report-style"):
		return report.Write(b.env.Stdout, "levels", r)
	case len(levels) > 1:
		return report.Write(b.env.Stdout, report.Curve, r)
	case b.brief() && b.blocks():
		return b.printClosing(report.Closing(&b.bench.Outcome))
	case b.brief():
		if err := b.printLevel(report.TextLevel, &levels[0]); err != nil {
			return err
		}
	}
	if len(levels) == 1 && b.tall() {
		text := conclusion.Of(&b.bench.Outcome).Text
		if verdict := string(levels[0].Summary.Verdict.Severity); !strings.HasPrefix(text[0], verdict) {
			before := map[bool]string{true: ", ", false: ": "}[strings.HasPrefix(text[0], outcome.SimulatedWord)]
			text[0] = verdict + before + text[0]
		}
		return b.printClosing(append(text, report.Doubts("", levels)...))
	}
	return nil
}

// tall reports whether the printed level is higher than the terminal, so that its verdict
// has left the screen.
func (b *benchRun) tall() bool {
	if !b.env.Terminal {
		return false
	}
	var text strings.Builder
	err := b.writeLevel(&text, report.TextLevel, &b.bench.Outcome.Levels[0])
	return err == nil && strings.Count(text.String(), "\n") >= b.env.Height()
}

// printClosing prints sentences about the run below its levels.
func (b *benchRun) printClosing(sentences []string) error {
	for _, text := range sentences {
		if _, err := fmt.Fprintln(b.env.Stdout, strings.Join(termtext.Wrap(text, b.env.wrapAt()), "\n")); err != nil {
			return err
		}
	}
	return nil
}

// printLevel prints one level.
func (b *benchRun) printLevel(print func(io.Writer, *report.Report, *outcome.Level) error, l *outcome.Level) error {
	return b.writeLevel(b.env.Stdout, print, l)
}

func (b *benchRun) writeLevel(w io.Writer, print func(io.Writer, *report.Report, *outcome.Level) error, l *outcome.Level) error {
	r := &report.Report{Runs: []outcome.Run{b.bench.Outcome}, Style: b.bench.Runner.Plan.ReportStyle, Brief: !b.bench.Runner.Asked.Verbose}
	b.env.fit(r)
	return print(w, r, l)
}

// suggestion breaks a line with a command like a shell, if it is too wide for the
// terminal, so that the command can still be copied.
func (e *Env) suggestion(line string) string {
	before, command, is := strings.Cut(line, ": tacho ")
	if !is || !e.Terminal || termtext.Width(line) <= e.Width() {
		return line
	}
	return before + ":\n" + strings.TrimSuffix(wrapCommand("tacho "+command, e.Width()), "\n")
}

// fit sets the width of a report to the width of the terminal. Without a terminal only
// sentences are wrapped.
func (e *Env) fit(r *report.Report) {
	if e.Terminal {
		r.Wide = e.Width()
	}
	r.Wrap, r.ASCII = e.wrapAt(), e.pen().ASCII
}

// wrapAt returns the width of sentences.
func (e *Env) wrapAt() int {
	if e.Terminal {
		return e.Width()
	}
	return report.TextWidth
}

// whatIsSent are the option groups that define the requests.
var whatIsSent = []string{"Request", "Workload", "Dataset", "Conversations", "Traces"}

// next suggests the next command after this run, with the same requests: the same run if it is INVALID or most
// requests failed, more requests if they are too few for a p99, otherwise a search for the limit.
func (b *benchRun) next() string {
	p := &b.bench.Runner.Asked
	if b.settings > 0 {
		return "start the best setting and find its maximum load: tacho find --base-url http://HOST:PORT" + b.same(whatIsSent...) + b.slo()
	}
	if slices.ContainsFunc(b.bench.Outcome.Levels, func(l outcome.Level) bool { return l.Summary.Config.Interrupted }) {
		return "continue the run: tacho bench --resume " + b.bench.Keep.Dir()
	}
	if conclusion.Failing(b.bench.Outcome.Levels) || conclusion.Of(&b.bench.Outcome).Verdict == metric.Invalid {
		return "fix the cause and repeat the run: tacho bench --plan " + b.bench.Keep.Dir()
	}
	if p.Sim != "" && !p.Virtual {
		return "measure your server: tacho bench --base-url http://HOST:PORT" + b.same(append(whatIsSent, "Load")...) + limitsOf(p)
	}
	target := b.target()
	if b.short() {
		return fmt.Sprintf("run longer, because a p99 needs %d requests: tacho bench %s%s%s --num-prompts %d", enoughRequests,
			target, b.sameBut([]string{"num-prompts", "max-seconds", "sweep-num-prompts-factor"}, "Load"), limitsOf(p), enoughRequests)
	}
	return "find the highest load that keeps an SLO: tacho find " + target + b.slo()
}

// target returns the flags of the server or engine, and of the requests.
func (b *benchRun) target() string {
	p := &b.bench.Runner.Asked
	target := "--base-url " + strings.Join(p.ShownURLs(), " ")
	switch {
	case p.Virtual:
		target = "--virtual --sim " + strings.Join(p.Values("sim"), ",")
	case p.Sim != "":
		target = "--sim " + p.Sim
	}
	return target + b.same(append(whatIsSent, "Server", "Agents", "Prediction")...)
}

// enoughRequests is the smallest number of requests with a p99.
const enoughRequests = 100

// short reports whether the run is one level with too few requests for a p99 because of its plan.
func (b *benchRun) short() bool {
	p, levels := &b.bench.Runner.Asked, b.bench.Outcome.Levels
	return len(levels) == 1 && levels[0].Summary.Requests < enoughRequests && !p.OwnTimes() && (p.Given("num-prompts") || p.MaxSeconds > 0)
}

// slo returns --slo for a search: the one of the run, the limits of --goodput for the slowest requests, otherwise the limit that the levels
// suggest.
func (b *benchRun) slo() string {
	if slo := b.bench.Runner.Asked.SLO; slo != "" {
		return " --slo " + outcome.Quoted(slo)
	}
	var limits []string
	for _, l := range b.bench.Outcome.Levels {
		for _, g := range l.Summary.Config.Goodput {
			unit := "" // the metric has its own unit
			if m := metric.Named(g.Metric); m != nil && m.Unit == metric.Millis {
				unit = string(m.Unit)
			}
			if limit := fmt.Sprintf("%s:p99<%g%s", g.Metric, g.LimitMillis, unit); !slices.Contains(limits, limit) {
				limits = append(limits, limit)
			}
		}
	}
	return " --slo '" + cmp.Or(strings.Join(limits, ","), conclusion.Limit(b.bench.Outcome.Levels), "ttft:p99<500ms") + "'"
}

// limitsOf returns the flags of --slo and --goodput.
func limitsOf(p *plan.Plan) (flags string) {
	if p.SLO != "" {
		flags = " --slo " + outcome.Quoted(p.SLO)
	}
	for _, limit := range p.Goodput {
		flags += " --goodput " + outcome.Quoted(limit)
	}
	return flags
}

// same returns the given flags of some groups, except flags that select the
// server or belong to one run. Secrets are left out.
func (b *benchRun) same(groups ...string) string { return b.sameBut(nil, groups...) }

// sameBut returns the same flags except some.
func (b *benchRun) sameBut(without []string, groups ...string) (flags string) {
	public := b.bench.Runner.Asked.Public(&redact.Secrets{})
	others := slices.Concat(serverFlags, engineFlags, without, []string{"label", "metadata", "request-id-prefix"})
	if public.Sim != "" {
		others = append(others, "backend") // implied by --sim
	}
	for _, o := range public.Options() {
		if !slices.Contains(groups, o.Group) || !o.Given() || o.Secret != redact.InURL || slices.Contains(others, o.Name) {
			continue
		}
		values := []string{o.Text()}
		if several, ok := o.Value.(*[]string); ok {
			values = *several
		}
		for _, v := range values {
			flags += strings.TrimSuffix(" --"+o.Name+" "+outcome.Quoted(v), " true")
		}
	}
	return flags
}
