package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/internal/search"
	"github.com/tacho-bench/tacho/internal/termtext"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/report"
	"github.com/tacho-bench/tacho/report/conclusion"
)

// findFlags are the flags of find besides those of bench.
type findFlags struct {
	bench.Goal
	planFlags
}

func newFind(env *Env) *cobra.Command {
	p := plan.Default()
	f := &findFlags{}
	cmd := &cobra.Command{
		Use:   "find --slo SLO [flags of bench]",
		Short: "Find the maximum load at which a server meets an SLO",
		Long: `find searches for the highest request rate at which a server meets an SLO, with
few and short probes. It ends with a sentence:

  Holds TTFT p99 < 500 ms up to 31 req/s (28 to 33); at 32.5 TTFT p99 < 500 ms
  breaks, and requests queue.

The probes show that 31 req/s meets the SLO and that 32.5 req/s misses it. The limit
is between 28 and 33 req/s with 95 % confidence. If the time runs out before both
are known, the answer is "Undecided: the limit is between A and B" with the reason,
and the exit code is 6.

An SLO is a list of limits on any metric of tacho metrics: percentiles and means
(ttft:p99<500ms, tpot:mean<40ms, e2el:p50<2s, stream_rate:p5>20), error<0.1% for the
fraction of failed requests, and goodput>95% for the fraction of requests within all
limits of --goodput. A failed request counts as infinitely slow.

The search starts with concurrency 1, increases the load until the SLO breaks, and
then measures between the highest load that meets the SLO and the lowest that
misses it. A probe ends as soon as the result is certain, or when requests queue
up. It lasts longer if the server pauses or refuses requests now and then. Every
probe is a level of one run, stored like runs of bench.

All flags of bench are accepted, except the load, which find chooses:
--request-rate, and --max-concurrency (unless --find rate should be limited).
--num-prompts is the maximum number of requests per probe. --max-seconds is
rejected, because each probe ends when its result is certain.`,
		Example: `  tacho find --slo "ttft:p99<500ms,tpot:p95<50ms,error<0.1%" --base-url http://127.0.0.1:8000
  tacho find --slo "ttft:p99<500ms" --sim vllm-8b-h100 --sim-speedup 10
  tacho find --slo "tpot:mean<30ms" --find concurrency --backend openai-chat
  tacho find --slo "ttft:p95<1s" --find users --dataset-name conversation --think-time-ms 5000`,
		Args: flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.read(env, &p); err != nil {
				return usage(err)
			}
			if err := chooseTarget(env, &p); err != nil {
				return err
			}
			return f.run(cmd.Context(), env, p)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.Load, "find", string(search.Rate), "load to find: rate (requests per second), concurrency (requests in flight) or users (concurrent sessions with think time)")
	fs.Float64Var(&f.From, "from", 0, "initial load (default: concurrency 1)")
	fs.Float64Var(&f.To, "to", 0, "maximum load (default: unlimited)")
	fs.StringVar(&f.Within, "within", "5%", "precision of the limit")
	fs.DurationVar(&f.Budget, "budget", 0, "maximum time for all probes, such as 20m; a fifth of it goes to the answer, so longer rhythms of the server show (default: 4m, or in virtual time as long as needed)")
	f.bind(fs, "print the plan without sending requests")
	bind(fs, &p)
	fs.Lookup("slo").Usage = "SLO to meet, as ttft:p99<500ms,tpot:p95<50ms,error<0.1%"
	fs.Lookup("max-concurrency").Usage = "maximum requests in flight"
	size := fs.Lookup("num-prompts")
	size.Usage, size.DefValue = "maximum requests per probe (default: as many as the SLO needs)", ""
	return cmd
}

// run checks the flags and searches for the limit.
func (f *findFlags) run(ctx context.Context, env *Env, p plan.Plan) error {
	asked := p
	f.SLO = p.TakeSLO()
	if err := knownWord("goal of --find", f.Load, findKinds()); err != nil {
		return usage(err)
	}
	s, err := f.Search(&p)
	if err != nil {
		return usage(err)
	}
	estimate := searchEstimate(s, &p)
	if f.dry {
		if estimate != "" {
			_, _ = fmt.Fprintln(env.Stderr, estimate) // informational
		}
		_, _ = fmt.Fprintf(env.Stderr, "Would search for the maximum %s that meets %s, within %s, with these options:\n", f.Load, f.SLO, f.Within) // informational
		return dryRun(env, asked)
	}
	return measure(ctx, env, p, nil, func(ctx context.Context, b *benchRun) error {
		b.search = s
		if estimate != "" {
			b.Message(estimate)
		}
		if think, constant := p.ThinkMS.Constant(); s.Kind == search.Users && constant && think > 0 {
			b.Message("Sessions begin together and think for a constant time, so they stay in step, and requests come in bursts: use a range, as --think-time-ms \"uniform(" + strconv.Itoa(think/2) + "," + strconv.Itoa(think+think/2) + ")\"")
		}
		find := &finding{run: b, search: s, flags: f}
		return find.conclude(ctx, b.bench.Find(ctx, s))
	})
}

// findKinds returns the values of --find.
func findKinds() (out []string) {
	for _, k := range search.Kinds {
		out = append(out, string(k))
	}
	return out
}

// goal returns the flags of the search, except its time.
func (f *findFlags) goal() string {
	flags := " --slo " + outcome.Quoted(f.SLO)
	if f.Load != string(search.Rate) {
		flags += " --find " + f.Load
	}
	if f.From > 0 {
		flags += fmt.Sprintf(" --from %g", f.From)
	}
	if f.To > 0 {
		flags += fmt.Sprintf(" --to %g", f.To)
	}
	if f.Within != "5%" {
		flags += " --within " + outcome.Quoted(f.Within)
	}
	return flags
}

// A finding is a search in progress.
type finding struct {
	run    *benchRun
	search *search.Search
	flags  *findFlags
}

// conclude prints the probes and the limit, stores both and returns the exit
// status.
func (f *finding) conclude(ctx context.Context, err error) error {
	f.run.progress.Stop()
	if f.run.bench.Keep == nil {
		return cmp.Or(ctx.Err(), err)
	}
	limit := f.run.bench.Limit(f.search, err == nil)
	f.run.answer = func() error { return f.show(&limit) }
	err = f.run.conclude(ctx, err)
	var exit *exitError
	if !limit.Decided && f.timeHelps() && (err == nil || errors.As(err, &exit) && exit.code == exitInvalid) {
		more := shortDuration((f.spent() + f.search.MoreTime()).Truncate(halfMinute) + halfMinute)
		f.run.Message(f.run.env.suggestion("Next, give the search more time: tacho find " + f.run.target() + f.run.same("Load") + f.flags.goal() + " --budget " + more))
	}
	switch {
	case errors.As(err, &exit) && exit.code == exitInvalid && !f.allVoid() && f.run.bench.Runner.Plan.FailIf == "":
		err = nil // unusable probes were not counted
	case err != nil:
		return err
	}
	switch {
	case err != nil:
	case !limit.Decided:
		return &exitError{code: exitUndecided}
	case !limit.Holds:
		return &exitError{code: exitMissed}
	}
	return err
}

// halfMinute is the precision of a proposed --budget.
const halfMinute = 30 * time.Second

// show prints the probes, their curves and the limit.
func (f *finding) show(l *search.Limit) error {
	if err := f.table(l); err != nil {
		return err
	}
	text := f.legend(l)
	text = append(text, f.curves(l)...)
	for _, sentence := range slices.Concat(conclusion.Of(&f.run.bench.Outcome).Text, report.Doubts("probe", f.numbered())) {
		text = append(text, termtext.Wrap(sentence, f.run.env.wrapAt())...)
	}
	_, err := fmt.Fprintln(f.run.env.Stdout, strings.Join(text, "\n"))
	return err
}

// numbered returns the levels with the numbers of their probes as names.
func (f *finding) numbered() []outcome.Level {
	levels := slices.Clone(f.run.bench.Outcome.Levels)
	for i := range levels {
		levels[i].Value = strconv.Itoa(i + 1)
	}
	return levels
}

// legend explains the verdicts on probes that are not plain.
func (f *finding) legend(l *search.Limit) (out []string) {
	for _, e := range []struct {
		verdict search.Verdict
		text    string
	}{
		{search.Overrun, "the server did not keep up, so requests queued"},
		{search.Undecided, "too close to the limit to tell in this time"},
		{search.Void, "the verdict on the probe is INVALID"},
	} {
		if slices.ContainsFunc(l.Probes, func(p search.Tried) bool { return p.Verdict == e.verdict.String() }) {
			out = append(out, termtext.Wrap(e.verdict.String()+": "+e.text, f.run.env.wrapAt())...)
		}
	}
	return out
}

// spent returns the time of all probes.
func (f *finding) spent() (sum time.Duration) {
	for _, r := range f.search.Results {
		sum += r.Took
	}
	return sum
}

// curves plots throughput and the binding goal by load, or nothing if there are
// too few probes.
func (f *finding) curves(l *search.Limit) []string {
	goals := f.search.Goals
	goal := max(slices.IndexFunc(goals, func(g search.Goal) bool { return g.String() == l.Binding }), 0)
	probes := l.Curve(goal)
	if len(probes) < 3 {
		return nil
	}
	served := &termtext.Plot{Title: "Throughput (req/s) by load", Name: "limit", Show: metric.Brief, ShowX: metric.Brief}
	broken := &termtext.Plot{Title: goals[goal].Words() + " by load", Name: "limit", Show: goals[goal].Show, ShowX: metric.Brief}
	if l.Decided {
		served.Mark, broken.Mark = &l.Load, &l.Load
	}
	for _, p := range probes {
		served.X, served.Y = append(served.X, p.Load), append(served.Y, p.Served)
		broken.Y = append(broken.Y, p.Values[goal])
	}
	broken.X = served.X
	r := &report.Report{}
	f.run.env.fit(r)
	return slices.Concat([]string{""}, r.Plots(served, broken), []string{""})
}

// allVoid reports whether no probe is usable.
func (f *finding) allVoid() bool {
	return !slices.ContainsFunc(f.search.Results, func(r search.Result) bool { return r.Verdict != search.Void })
}

// timeHelps reports whether a longer search may decide. It may not if the last probe is unusable: its reason says what to do.
func (f *finding) timeHelps() bool {
	all := f.search.Results
	return len(all) > 0 && all[len(all)-1].Verdict != search.Void
}

// table prints one line per probe. If it is wider than the terminal, it leaves out the effort of the probes.
func (f *finding) table(l *search.Limit) error {
	effort := []string{"requests", "seconds", "served/s"}
	for {
		text := f.tableWith(l, effort)
		head, _, _ := strings.Cut(text, "\n")
		if len(effort) == 0 || !f.run.env.Terminal || termtext.Width(head) <= f.run.env.Width() {
			_, err := io.WriteString(f.run.env.Stdout, text)
			return err
		}
		effort = effort[1:]
	}
}

// tableWith returns the table with some of the columns on the effort of a probe.
func (f *finding) tableWith(l *search.Limit, effort []string) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := []string{"probe", l.Kind.Unit()}
	for _, name := range []string{"requests", "seconds", "served/s"} {
		if slices.Contains(effort, name) {
			head = append(head, name)
		}
	}
	for _, g := range f.search.Goals {
		head = append(head, g.Words())
	}
	_, _ = fmt.Fprintln(w, strings.Join(append(head, "verdict", ""), "\t")) // a strings.Builder has no errors
	for i, p := range l.Probes {
		load := metric.Setting(p.Load)
		if p.Alone {
			load = "alone"
		}
		row := []string{strconv.Itoa(i + 1), load}
		for _, cell := range []struct{ name, text string }{
			{"requests", strconv.Itoa(p.Requests)}, {"seconds", metric.Brief(p.Seconds)}, {"served/s", metric.Brief(p.Served)},
		} {
			if slices.Contains(effort, cell.name) {
				row = append(row, cell.text)
			}
		}
		for k, g := range f.search.Goals {
			row = append(row, g.Show(p.Values[k]))
		}
		_, _ = fmt.Fprintln(w, strings.Join(append(row, p.Verdict, ""), "\t"))
	}
	_ = w.Flush()
	return out.String()
}
