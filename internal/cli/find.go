package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho"
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
	kind, within string
	from, to     float64
	budget       time.Duration
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

31 req/s met the SLO in a full probe, 32.5 req/s missed it. The limit is between
28 and 33 req/s with 95 % confidence. If the time runs out before both are known,
the answer is "Undecided: the limit is between A and B" and the exit code is 6.

An SLO is a list of limits on any metric of tacho metrics: percentiles and means
(ttft:p99<500ms, tpot:mean<40ms, e2el:p50<2s, stream_rate:p5>20), and error<0.1% for the
fraction of failed requests. A failed request counts as infinitely slow.

The search starts with concurrency 1, increases the load until the SLO breaks, and
then measures between the highest load that meets the SLO and the lowest that
misses it. A probe ends as soon as the result is certain, or when requests queue
up, and lasts at least 20 seconds near the limit. Every probe is a level of one
run, stored like runs of bench.

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
	fs.StringVar(&f.kind, "find", string(search.Rate), "load to find: rate (requests per second), concurrency (requests in flight) or users (concurrent sessions with think time)")
	fs.Float64Var(&f.from, "from", 0, "initial load (default: concurrency 1)")
	fs.Float64Var(&f.to, "to", 0, "maximum load (default: unlimited)")
	fs.StringVar(&f.within, "within", "5%", "precision of the limit")
	fs.DurationVar(&f.budget, "budget", 0, "maximum time for all probes, such as 5m; --dry-run prints the usual time (default: the time of 6,500 requests at the limit, or three times that without a result)")
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
	slo := p.TakeSLO()
	s, err := f.search(&p, slo)
	if err != nil {
		return usage(err)
	}
	estimate := searchEstimate(s, &p)
	if f.dry {
		if estimate != "" {
			_, _ = fmt.Fprintln(env.Stderr, estimate) // informational
		}
		_, _ = fmt.Fprintf(env.Stderr, "Would search for the maximum %s that meets %s, within %s, with these options:\n", f.kind, slo, f.within) // informational
		return dryRun(env, p)
	}
	return measure(ctx, env, p, nil, func(ctx context.Context, b *benchRun) error {
		b.bench.Terse, b.search = true, true
		if estimate != "" {
			b.Message(estimate)
		}
		find := &finding{benchRun: b, search: s, plan: p}
		return find.conclude(ctx, find.probeAll(ctx))
	})
}

// search returns the search for the flags. It removes the load from the plan
// and adds the SLO per request.
func (f *findFlags) search(p *plan.Plan, slo string) (*search.Search, error) {
	goals, err := search.ParseSLO(slo)
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
		return nil, fmt.Errorf("--budget %v: want a value above 0", f.budget)
	}
	if s.From < 0 || s.To < 0 || s.To > 0 && s.From > s.To {
		return nil, fmt.Errorf("--from %v --to %v: --from must be lower than --to", f.from, f.to)
	}
	if p.Varies() != "" {
		return nil, fmt.Errorf("find does not accept lists (%s), set one value and run find once per value", p.Varies())
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

// findKinds returns the values of --find.
func findKinds() (out []string) {
	for _, k := range search.Kinds {
		out = append(out, string(k))
	}
	return out
}

// checkLoad rejects options that set the load.
func (f *findFlags) checkLoad(p *plan.Plan, kind search.Kind) error {
	if p.Given("max-seconds") {
		return errors.New("--max-seconds cannot be combined with find, which ends each probe itself (--num-prompts limits the requests of a probe)")
	}
	found := []string{"request-rate", "ramp-up-strategy"}
	if kind != search.Rate {
		found = append(found, "max-concurrency")
	}
	for _, name := range found {
		if p.Given(name) {
			return fmt.Errorf("--%s cannot be combined with find, which chooses the load (--from and --to limit it)", name)
		}
	}
	if p.OwnTimes() {
		return fmt.Errorf("--dataset-name %s has its own arrival times, so find cannot choose the load", p.DatasetName)
	}
	return nil
}

// A finding is a search in progress.
type finding struct {
	*benchRun
	search *search.Search
	plan   plan.Plan
}

// probeAll runs all probes of the search.
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

// probe runs one probe and prints its result.
func (f *finding) probe(ctx context.Context, p search.Probe) error {
	level, err := f.level(p)
	if err != nil {
		return err
	}
	enough := make(chan struct{})
	f.bench.Runner.Enough = enough
	f.progress.search(f.search.Left())
	judge := &judge{Sink: f.bench, watch: f.search.Watch(p), enough: enough, live: f.progress}
	out, err := f.bench.Runner.Measure(ctx, level, judge)
	if out == nil {
		return err
	}
	f.bench.LevelEnded(out)
	if err != nil {
		return err
	}
	r := f.search.Add(judge.watch, f.void(out))
	f.Message(f.line(r))
	return nil
}

// level converts a probe to a level of the plan.
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
		pacer, bad := f.bench.Runner.Draw(l, k)
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

// A judge is a sink that ends a probe when its result is certain.
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

// inFlight returns the number of requests in flight.
func (p *progress) inFlight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.level == nil {
		return 0
	}
	return p.level.feed.InFlight()
}

// void explains why a probe is not usable, or returns an empty string: its
// verdict is INVALID for another reason than failed requests, which a probe has
// to detect, or the figure of a goal is not usable.
func (f *finding) void(l *outcome.Level) string {
	v := &l.Summary.Verdict
	for _, r := range v.Reasons {
		if r.Severity == metric.Invalid && r.Code != "failures" && r.Code != "no-success" {
			return r.Text
		}
	}
	for _, g := range f.search.Goals {
		q := metric.Quantity{Metric: g.Metric}
		if why := q.Unusable(&l.Summary); g.Metric != nil && v.Severity != metric.Invalid && why != "" {
			return why
		}
	}
	return ""
}

// line describes a probe in one line.
func (f *finding) line(r search.Result) string {
	at := metric.Brief(r.Load) + " " + r.Kind.Unit()
	if r.Alone {
		at = "concurrency 1"
	}
	verdict := r.Verdict.String()
	switch r.Verdict {
	case search.Undecided:
		verdict += " on " + r.Why
	case search.Void:
		verdict += ", because " + r.Why + ","
	}
	return fmt.Sprintf("Probe %d, %s: %s after %d requests in %.0f s (%s)", r.Number+1, at, verdict, r.Requests, r.Took.Seconds(), strings.Join(f.values(r), ", "))
}

func (f *finding) values(r search.Result) (out []string) {
	for i, g := range f.search.Goals {
		out = append(out, g.Words()+" "+g.Show(r.Goals[i].Value))
	}
	return out
}

// conclude prints the probes and the limit, stores both and returns the exit
// status.
func (f *finding) conclude(ctx context.Context, err error) error {
	f.progress.stop()
	if f.bench.Keep == nil {
		return cmp.Or(ctx.Err(), err)
	}
	limit := f.search.Limit(err == nil)
	if f.bench.Runner.Plan.Virtual {
		limit.Sentence = metric.PredictedWord + limit.Sentence
	}
	f.bench.Outcome.Notes, f.bench.Outcome.HeldProbe = append(f.bench.Outcome.Notes, outcome.LimitNote(limit.Sentence)), limit.Probe
	f.bench.Note(f.bench.Keep.Limit(limit))
	f.answer = func() error { return f.show(&limit) }
	err = f.benchRun.conclude(ctx, err)
	var exit *exitError
	if !limit.Decided && !f.allVoid() && (err == nil || errors.As(err, &exit) && exit.code == exitInvalid) {
		f.Message("Next, give the search more time: add --budget " + shortDuration((2*f.spent()).Truncate(halfMinute)+halfMinute))
	}
	switch {
	case errors.As(err, &exit) && exit.code == exitInvalid && !f.allVoid() && f.bench.Runner.Plan.FailIf == "":
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
	for _, sentence := range slices.Concat(conclusion.Of(&f.bench.Outcome).Text, report.Doubts("probe", f.numbered())) {
		text = append(text, termtext.Wrap(sentence, f.env.wrapAt())...)
	}
	_, err := fmt.Fprintln(f.env.Stdout, strings.Join(text, "\n"))
	return err
}

// numbered returns the levels with the numbers of their probes as names.
func (f *finding) numbered() []outcome.Level {
	levels := slices.Clone(f.bench.Outcome.Levels)
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
			out = append(out, termtext.Wrap(e.verdict.String()+": "+e.text, f.env.wrapAt())...)
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
	f.env.fit(r)
	return slices.Concat([]string{""}, r.Plots(served, broken), []string{""})
}

// allVoid reports whether no probe is usable.
func (f *finding) allVoid() bool {
	return !slices.ContainsFunc(f.search.Results, func(r search.Result) bool { return r.Verdict != search.Void })
}

// table prints one line per probe. If it is wider than the terminal, it leaves out the effort of the probes.
func (f *finding) table(l *search.Limit) error {
	effort := []string{"requests", "seconds", "served/s"}
	for {
		text := f.tableWith(l, effort)
		head, _, _ := strings.Cut(text, "\n")
		if len(effort) == 0 || !f.env.Terminal || termtext.Width(head) <= f.env.Width() {
			_, err := io.WriteString(f.env.Stdout, text)
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
		load := metric.Brief(p.Load)
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
