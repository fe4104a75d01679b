package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tacho/internal/redact"
	"tacho/outcome"
	"tacho/report"
	"tacho/report/conclusion"
	"tacho/store"
)

// brief says whether levels are told in a line each, and all of them on one screen:
// where there are several, and nobody asks for more. It holds for runs as they are
// measured, and for kept ones.
func brief(several, verbose, styled bool) bool { return several && !verbose && !styled }

func (b *benchRun) brief() bool {
	p := &b.Runner.Asked
	return brief(len(p.Levels()) > 1 || p.Swept() != "" || len(b.Outer) > 0, p.Verbose, p.Given("report-style"))
}

// present shows what the run came to, and keeps that with it.
func (b *benchRun) present(r *report.Report) error {
	err := errors.Join(b.showAll(r), b.WriteFiles(r))
	if err == nil && b.brief() && !b.Terse {
		b.say("Whole report: " + filepath.Join(b.Keep.Dir(), store.TextFile))
	}
	if !b.Terse {
		b.say("Next: " + b.next())
	}
	return err
}

// showAll shows all levels together; one alone has been shown, unless others were
// to follow.
func (b *benchRun) showAll(r *report.Report) error {
	b.env.fit(r)
	levels := b.Outcome.Levels
	switch {
	case b.Terse:
		return nil
	case len(levels) > 1 && b.Runner.Asked.Given("report-style"):
		return show(b.env.Stdout, "levels", r)
	case len(levels) > 1:
		return show(b.env.Stdout, report.Curve, r)
	case b.brief():
		if err := report.TextLevel(b.env.Stdout, &b.Outcome, &levels[0], b.Runner.Plan.ReportStyle); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(b.env.Stdout, strings.Join(report.Closing(&b.Outcome), "\n"))
	return err
}

// fit makes a report as wide as the terminal.
func (e *Env) fit(r *report.Report) {
	if e.Terminal {
		r.Wide = e.Width()
	}
	r.ASCII = e.pen().ASCII
}

// whatIsSent are the groups of options that say it.
var whatIsSent = []string{"Request", "Dataset", "Conversations", "Traces"}

// next is what to do after this run.
func (b *benchRun) next() string {
	p := &b.Runner.Asked
	whom := "--base-url " + strings.Join(p.ShownURLs(), " ")
	if len(b.Outer) > 0 {
		return "how much the best of them takes: start it, and tacho find --base-url http://HOST:PORT --slo '" + cmp.Or(conclusion.Limit(b.Outcome.Levels), "ttft:p99<500ms") + "'"
	}
	if slices.ContainsFunc(b.Outcome.Levels, func(l outcome.Level) bool { return l.Summary.Config.Interrupted }) {
		return "the rest of it: tacho bench --resume " + b.Keep.Dir()
	}
	if !slices.ContainsFunc(b.Outcome.Levels, func(l outcome.Level) bool { return l.Summary.Completed > 0 }) {
		return "the same again, when the cause is gone: tacho bench --plan " + b.Keep.Dir()
	}
	if p.Virtual {
		whom = "--virtual --sim " + strings.Join(p.Values("sim"), ",")
	} else if p.Sim != "" {
		return "a server of your own: tacho bench --base-url http://HOST:PORT" + b.same(append(whatIsSent, "Load")...)
	}
	whom += b.same(append(whatIsSent, "Server", "Agents", "Fleet")...)
	if limit := conclusion.Limit(b.Outcome.Levels); limit != "" {
		return "the limit to a few percent: tacho find " + whom + " --slo '" + limit + "'"
	}
	return "how much it takes: tacho bench " + whom + " --request-rate sweep"
}

// same are the flags of some groups that the run was given, but for those that say
// where the server is, or are of one run alone. Secrets are left out.
func (b *benchRun) same(groups ...string) (flags string) {
	public := b.Runner.Asked.Public(&redact.Secrets{})
	others := slices.Concat(serverFlags, engineFlags, []string{"label", "metadata", "request-id-prefix"})
	if public.Sim != "" {
		others = append(others, "backend") // it follows from that
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
