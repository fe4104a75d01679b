package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tacho"
	"tacho/internal/cells"
	"tacho/metric"
	"tacho/outcome"
	"tacho/plan"
	"tacho/report"
	"tacho/report/conclusion"
	"tacho/search"
)

// findFlags are the words of the command, beside those of bench.
type findFlags struct {
	slo, kind, within string
	from, to          float64
	budget            time.Duration
	planFlags
}

func newFind(env *Env) *cobra.Command {
	p := plan.Default()
	f := &findFlags{}
	cmd := &cobra.Command{
		Use:   "find --slo SLO [flags of bench]",
		Short: "Find the highest load at which a server keeps an SLO",
		Long: `find looks for the highest request rate at which a server keeps an SLO, in as
few and as short probes as it can. It ends with a sentence:

  Holds TTFT p99 < 500 ms up to 31 req/s (28 to 33); at 32.5 TTFT p99 < 500 ms
  breaks, and requests queue.

31 req/s kept the SLO in a probe of its own, 32.5 req/s missed it. The limit is
between 28 and 33 req/s with a chance of 95 %. If time runs out before both are
known, the answer is "Undecided: the limit is between A and B" and the exit code
is 6.

An SLO is a list of limits on what tacho metrics lists: percentiles and means
(ttft:p99<500ms, tpot:mean<40ms, e2el:p50<2s, speed:p5>20), and error<0.1% for
the share of requests that fail. A request that failed is infinitely slow.

It begins with one request at a time and goes up until the SLO breaks, then
measures between the highest load that holds and the lowest that misses. A probe
ends as soon as it certainly passes or fails, or when requests pile up, and lasts
20 seconds at least near the limit. Every probe is a level of one run, which is
kept as those of bench are.

All flags of bench say what is asked for, but those of the load are found:
--request-rate, and --max-concurrency (unless --find rate is to have a limit).
--num-prompts is the most requests of one probe. --max-seconds is refused,
because a probe ends by its own evidence.`,
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
	fs.StringVar(&f.slo, "slo", "", "what must hold, as ttft:p99<500ms,tpot:p95<50ms,error<0.1%")
	fs.StringVar(&f.kind, "find", string(search.Rate), "what to turn up: rate (requests per second), concurrency (requests at once) or users (sessions at once, with their think time)")
	fs.Float64Var(&f.from, "from", 0, "load to begin with (default: one request at a time)")
	fs.Float64Var(&f.to, "to", 0, "highest load to try (default: no end)")
	fs.StringVar(&f.within, "within", "5%", "how exact the limit must be")
	fs.DurationVar(&f.budget, "budget", 0, "most time for all probes together, such as 10m (default: as long as 6,500 requests take at the limit, and three times that without an answer)")
	f.bind(fs, "print the plan and send nothing")
	bind(fs, &p)
	size := fs.Lookup("num-prompts")
	size.Usage, size.DefValue = "most requests of one probe (default: as many as the goals need)", ""
	return cmd
}

// run checks the words and looks for the limit.
func (f *findFlags) run(ctx context.Context, env *Env, p plan.Plan) error {
	s, err := f.search(&p)
	if err != nil {
		return usage(err)
	}
	if f.dry {
		_, _ = fmt.Fprintf(env.Stderr, "It would look for the highest %s that keeps %s, to within %s, with these options:\n", f.kind, f.slo, f.within) // for information
		return dryRun(env, p)
	}
	return measure(ctx, env, p, nil, func(ctx context.Context, b *benchRun) error {
		b.Terse = true
		find := &finding{benchRun: b, search: s, plan: p}
		return find.conclude(ctx, find.probeAll(ctx))
	})
}

// search is the search that the words ask for. It takes out of the plan what is
// found, and puts in what each request should keep.
func (f *findFlags) search(p *plan.Plan) (*search.Search, error) {
	goals, err := search.ParseSLO(f.slo)
	if err != nil {
		return nil, fmt.Errorf("--slo: %w", err)
	}
	kind := search.Kind(f.kind)
	if err := knownWord("goal of --find", f.kind, findKinds()); err != nil {
		return nil, err
	}
	s := search.New(kind, goals)
	if s.Within, err = search.ParseShare(f.within); err != nil {
		return nil, fmt.Errorf("--within: %w", err)
	}
	s.From, s.To, s.Budget = f.from, f.to, f.budget
	if s.Budget < 0 {
		return nil, fmt.Errorf("--budget %v: it must be above 0", f.budget)
	}
	if s.From < 0 || s.To < 0 || s.To > 0 && s.From > s.To {
		return nil, fmt.Errorf("--from %v --to %v: the first must be the lower one", f.from, f.to)
	}
	if p.Varies() != "" {
		return nil, fmt.Errorf("find has no room for lists (%s): give one value, or run it once for each", p.Varies())
	}
	if err := f.checkLoad(p, kind); err != nil {
		return nil, err
	}
	if p.Given("num-prompts") {
		s.Size = p.NumPrompts
	}
	if len(p.Goodput) == 0 {
		for _, g := range goals {
			if slo, ok := g.PerRequest(); ok {
				p.Goodput = append(p.Goodput, slo.Metric+":"+strconv.FormatFloat(slo.LimitMillis, 'g', -1, 64))
			}
		}
	}
	return s, nil
}

// findKinds are the words that --find takes.
func findKinds() (out []string) {
	for _, k := range search.Kinds {
		out = append(out, string(k))
	}
	return out
}

// checkLoad refuses options that say what is to be found.
func (f *findFlags) checkLoad(p *plan.Plan, kind search.Kind) error {
	if p.Given("max-seconds") {
		return errors.New("--max-seconds is not for find, because a probe ends when its evidence is enough: leave it out (--num-prompts bounds the requests of one probe)")
	}
	found := []string{"request-rate", "ramp-up-strategy"}
	if kind != search.Rate {
		found = append(found, "max-concurrency")
	}
	for _, name := range found {
		if p.Given(name) {
			return fmt.Errorf("--%s says how much load there is, and find looks for that: leave it out (--from and --to bound it)", name)
		}
	}
	if p.OwnTimes() {
		return fmt.Errorf("--dataset-name %s has arrival times of its own, so that there is no load to find", p.DatasetName)
	}
	return nil
}

// A finding is a search as it goes on.
type finding struct {
	*benchRun
	search *search.Search
	plan   plan.Plan
}

// probeAll runs the probes that the search asks for.
func (f *finding) probeAll(ctx context.Context) error {
	for {
		p, ok := f.search.Next()
		if !ok {
			return nil
		}
		if err := f.probe(ctx, p); err != nil {
			return err
		}
	}
}

// probe runs one probe, and tells what came of it.
func (f *finding) probe(ctx context.Context, p search.Probe) error {
	level, err := f.level(p)
	if err != nil {
		return err
	}
	enough := make(chan struct{})
	f.Runner.Enough = enough
	judge := &judge{Sink: f.benchRun, watch: f.search.Watch(p), enough: enough, live: f.benchRun}
	out, err := f.Runner.Measure(ctx, level, judge)
	if out == nil {
		return err
	}
	f.End(out)
	if err != nil {
		return err
	}
	r := f.search.Add(judge.watch, void(out))
	f.say(f.line(r))
	return nil
}

// level is a probe as a level of the plan.
func (f *finding) level(p search.Probe) (plan.Level, error) {
	one := f.plan
	value := strconv.FormatFloat(p.Load, 'f', -1, 64)
	at := outcome.Coordinates{{Name: "max-concurrency", Value: value}}
	switch {
	case p.Open():
		at = outcome.Coordinates{{Name: "request-rate", Value: value}}
	case p.Kind == search.Rate:
		at = outcome.Coordinates{{Name: "request-rate", Value: "inf"}, {Name: "max-concurrency", Value: "1"}}
	}
	if err := one.Set("num-prompts", strconv.Itoa(p.Ceiling())); err != nil {
		return plan.Level{}, err
	}
	l, err := one.At(p.Number, at)
	if err != nil || !p.Open() {
		return l, err
	}
	draw := func(l plan.Level, k uint64) iter.Seq[time.Duration] {
		pacer, bad := f.Runner.Draw(l, k)
		if bad != nil {
			err = bad
			return func(func(time.Duration) bool) {}
		}
		return pacer.Arrivals()
	}
	process := l
	process.Prompts = search.ProcessSize
	l.Draw = f.search.ChooseDraw(p, draw(process, 0), func(k uint64) iter.Seq[time.Duration] { return draw(l, k) })
	return l, err
}

// A judge is a sink that ends a probe when enough is seen.
type judge struct {
	tacho.Sink
	watch  *search.Watch
	enough chan struct{}
	over   bool
	live   interface{ inFlight() int }
}

// Add implements tacho.Sink.
func (j *judge) Add(r *tacho.Record) error {
	if j.watch.Add(r, j.live.inFlight()) && !j.over {
		j.over = true
		close(j.enough)
	}
	return j.Sink.Add(r)
}

// inFlight is how many requests of the level that runs are under way.
func (b *benchRun) inFlight() int {
	if b.Live == nil {
		return 0
	}
	return b.Live.InFlight()
}

// void is why a probe proves nothing: its verdict is INVALID, and not because the
// server failed requests, which is what a probe is to find out.
func void(l *outcome.Level) string {
	for _, r := range l.Summary.Verdict.Reasons {
		if r.Severity == metric.Invalid && r.Code != "failures" && r.Code != "no-success" {
			return r.Text
		}
	}
	return ""
}

// line tells of a probe.
func (f *finding) line(r search.Result) string {
	at := search.Number(r.Load) + " " + r.Kind.Unit()
	if r.Alone {
		at = "one at a time"
	}
	verdict := r.Verdict.String()
	if r.Verdict == search.Undecided {
		verdict += " on " + r.Why
	}
	return fmt.Sprintf("Probe %d, %s: %s after %d requests in %.0f s (%s)", r.Number+1, at, verdict, r.Requests, r.Took.Seconds(), strings.Join(f.values(r), ", "))
}

func (f *finding) values(r search.Result) (out []string) {
	for i, g := range f.search.Goals {
		out = append(out, g.Words()+" "+g.Show(r.Goals[i].Value))
	}
	return out
}

// conclude shows the probes and the limit, keeps both, and says what to exit with.
func (f *finding) conclude(ctx context.Context, err error) error {
	f.progress.stop()
	if f.Keep == nil {
		return cmp.Or(ctx.Err(), err)
	}
	limit := f.search.Limit(err == nil)
	if f.Runner.Plan.Virtual {
		limit.Sentence = metric.PredictedWord + limit.Sentence
	}
	f.Outcome.Notes, f.Outcome.HeldProbe = append(f.Outcome.Notes, outcome.LimitNote(limit.Sentence)), limit.Probe
	f.Note(f.Keep.Limit(limit))
	err = f.benchRun.conclude(ctx, err)
	f.Note(f.table(&limit))
	if _, bad := fmt.Fprintln(f.env.Stdout, strings.Join(append(f.curves(&limit), conclusion.Of(&f.Outcome).Text...), "\n")); bad != nil && err == nil {
		return bad
	}
	var exit *exitError
	switch {
	case errors.As(err, &exit) && exit.code == exitInvalid && !f.allVoid():
		err = nil // the probes that prove nothing were not counted
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

// curves draw what was served, and the goal that breaks first, by load; nothing
// where there are too few probes.
func (f *finding) curves(l *search.Limit) []string {
	goals := f.search.Goals
	goal := max(slices.IndexFunc(goals, func(g search.Goal) bool { return g.String() == l.Binding }), 0)
	probes := l.Curve(goal)
	if len(probes) < 3 {
		return nil
	}
	served := &cells.Plot{Title: "Served req/s by load", Name: "limit", Show: search.Number, ShowX: search.Number}
	broken := &cells.Plot{Title: goals[goal].Words() + " by load", Name: "limit", Show: goals[goal].Show, ShowX: search.Number}
	if l.Decided {
		served.Mark, broken.Mark = &l.Load, &l.Load
	}
	for _, p := range probes {
		served.X, served.Y = append(served.X, p.Load), append(served.Y, p.Served)
		broken.Y = append(broken.Y, p.Values[goal])
	}
	broken.X = served.X
	r := &report.Report{}
	f.env.fit(r)
	return slices.Concat([]string{""}, r.Plots(served, broken), []string{""})
}

// allVoid says whether no probe proves anything.
func (f *finding) allVoid() bool {
	return !slices.ContainsFunc(f.search.Results, func(r search.Result) bool { return r.Verdict != search.Void })
}

// table shows the probes, one in a line.
func (f *finding) table(l *search.Limit) error {
	w := tabwriter.NewWriter(f.env.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := []string{"probe", l.Kind.Unit(), "requests", "seconds", "served/s"}
	for _, g := range f.search.Goals {
		head = append(head, g.Words())
	}
	_, _ = fmt.Fprintln(w, strings.Join(append(head, "verdict", ""), "\t")) // Flush tells
	for i, p := range l.Probes {
		load := search.Number(p.Load)
		if p.Alone {
			load = "alone"
		}
		row := []string{strconv.Itoa(i + 1), load, strconv.Itoa(p.Requests), fmt.Sprintf("%.1f", p.Seconds), fmt.Sprintf("%.2f", p.Served)}
		for k, g := range f.search.Goals {
			row = append(row, g.Show(p.Values[k]))
		}
		_, _ = fmt.Fprintln(w, strings.Join(append(row, p.Verdict, ""), "\t"))
	}
	return w.Flush()
}
