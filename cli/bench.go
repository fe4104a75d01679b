package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nuid"
	"github.com/spf13/cobra"

	"tacho"
	"tacho/archive"
	"tacho/internal/redact"
	"tacho/live"
	"tacho/metric"
	"tacho/outcome"
	"tacho/plan"
	"tacho/publish"
	"tacho/report"
	"tacho/run"
	"tacho/store"
)

func newBench(env *Env) *cobra.Command {
	p := plan.Default()
	return benchCommand(&p, env, bench)
}

// benchCommand is bench with a plan to begin with, and with who carries it out.
func benchCommand(p *plan.Plan, env *Env, do func(context.Context, *Env, plan.Plan, benchOptions) error) *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Drive a server under a known load and report its latencies and throughput",
		Long: `bench sends requests to a server at known times and reports how it served them.

Flags are those of "vllm bench serve" and mean what they mean there; those
marked + are tacho's own. Dashes and underscores are the same, and a flag may
be cut short where that is clear.

Any flag that takes a number or a choice takes a list as well (1,2,4 or
1,2,...,4096; openai,openai-chat), and runs one level for each value, or for each
combination of several lists. --repeat runs each level several times.

The key that OPENAI_API_KEY holds, or --api-key-file names, is shown to the
server. --api-key takes it too, but others on this machine can read that.

Without any flag that names a server, bench measures the simulated engine that
tacho carries, as --sim does.

--dry-run prints the plan, as YAML, and sends nothing. --plan reads such a file,
or the plan of a run that was kept, and flags go before it. --resume goes on with
a run that was cut short.

Every run is kept below --runs-dir, with a page to look at (report.html);
"tacho report DIR" prints it again.`,
		Example: `  tacho bench
  tacho bench --base-url http://127.0.0.1:8000 --num-prompts 100
  tacho bench --backend openai-chat --request-rate 10 --max-seconds 60
  tacho bench --base-url http://127.0.0.1:8000 --request-rate 1,2,4,8 --max-seconds 30
  tacho bench --sim vllm-405b-mi300x --random-input-len 80 --num-prompts 1,2,4,8,16
  tacho bench --backend tgi --dataset-name book --dataset-path book.txt --book-input-len 10000 --num-prompts 1,2,...,64
  tacho bench --request-rate 10 --max-seconds 60 --dry-run
  tacho bench --max-concurrency 1,2,4,8 --num-prompts 50 --percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 50,90,99`,
		Args: flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.compare) > 0 {
				return compareTwo(env, o.compare)
			}
			if err := errors.Join(o.read(env, p), readResumed(env, &o, p)); err != nil {
				return usage(err)
			}
			if !namesServer(p) {
				defaultScenario(p)
			}
			if err := chooseTarget(env, p); err != nil {
				return err
			}
			return do(cmd.Context(), env, *p, o)
		},
	}
	cmd.Flags().SortFlags = false
	o.bind(cmd.Flags(), "print the plan and its levels, and send nothing")
	cmd.Flags().StringArrayVar(&o.compare, "compare", nil, "two runs or results: show how they differ and measure nothing, as tacho compare does")
	cmd.Flags().StringVar(&o.resume, "resume", "", "directory of a run that was cut short: go on with its plan, in its directory; levels that came to their end and have all of their records are kept; "+lastRun+" is the last one below --runs-dir, or a new run where that came to its end")
	bind(cmd.Flags(), p)
	return cmd
}

// benchOptions are what bench is told besides the plan.
type benchOptions struct {
	planFlags
	compare []string     // two results; nothing is measured
	resume  string       // directory of the run to go on with
	resumed *outcome.Run // what is kept of it
	seed    *uint64      // that it had
}

// bench carries out the plan and shows what came of it; dry, it shows the plan.
func bench(ctx context.Context, env *Env, p plan.Plan, o benchOptions) error {
	if o.dry {
		return dryRun(env, p)
	}
	return measure(ctx, env, p, o.seed, func(ctx context.Context, b *benchRun) error {
		if err := b.resume(&o); err != nil {
			return err
		}
		err := b.runner.Run(ctx, b, b.end, b.run.Levels...)
		b.progress.stop()
		return b.conclude(ctx, err)
	})
}

// measure gets a run ready, lets somebody carry it out, and cleans up after that.
func measure(ctx context.Context, env *Env, p plan.Plan, seed *uint64, do func(context.Context, *benchRun) error) error {
	b, err := openBench(ctx, env, p, nil, seed)
	if err != nil {
		return err
	}
	defer b.close(ctx)
	ctx, b.stop = context.WithCancelCause(ctx)
	defer b.stop(nil)
	return do(ctx, b)
}

// dryRun shows the plan and sends nothing.
func dryRun(env *Env, p plan.Plan) error {
	if err := checkResults(&p); err != nil {
		return usage(err)
	}
	if _, _, err := apiKey(env, &p); err != nil {
		return usage(err)
	}
	return showPlan(env, p, p.Public(env.secrets))
}

// openBench gets a run ready. Serve starts the server that it needs; nil starts
// the simulated engine, if the plan has one. The seed is for a plan that has
// none; nil draws one.
func openBench(ctx context.Context, env *Env, p plan.Plan, serve func(*plan.Plan, uint64) (func(), error), seed *uint64) (*benchRun, error) {
	if err := checkResults(&p); err != nil {
		return nil, usage(err)
	}
	key, keyFrom, err := apiKey(env, &p)
	if err != nil {
		return nil, usage(err)
	}
	given, err := json.Marshal(new(p.Public(env.secrets)))
	if err != nil {
		return nil, err
	}
	env.tune()
	b := &benchRun{env: env, given: given, progress: newProgress(env, &p)}
	b.around = run.Env{APIKey: key, KeyFrom: keyFrom, Secrets: env.secrets, Proxy: http.ProxyFromEnvironment, Dial: env.dial(), Server: env.Server, Random: *cmp.Or(seed, new(randomSeed())), Tokenizers: tokenizers(env)}
	b.around.Replay = func(name string) (*run.Replay, error) { return openReplay(env, name) }
	if serve == nil {
		serve = func(p *plan.Plan, seed uint64) (func(), error) { return startSim(env, p, seed) }
	}
	if p.Agents > 0 {
		b.agents = &agents{env: env, plan: &p.Machines, runs: p.RunsDir, say: b.say, name: nuid.Next()}
		for _, server := range p.BaseURLs() {
			b.agents.to += " --allow-target " + redact.URL(server)
		}
		b.around.Agents = b.agents
	}
	if err := b.connect(ctx, p, serve); err != nil {
		b.progress.stop()
		return nil, err
	}
	return b, nil
}

// connect opens the servers of the plan.
func (b *benchRun) connect(ctx context.Context, p plan.Plan, serve func(*plan.Plan, uint64) (func(), error)) error {
	hooks := run.Hooks{Say: b.say, Ready: b.progress.ready, Fetch: b.progress.fetch, Serve: serve, Open: b.open, Begin: b.begin, Watch: b.progress.on() || p.MetricsListen != "" || p.OTLP != ""}
	r, err := run.Open(ctx, p, b.around, hooks)
	if ctx.Err() != nil {
		return ctx.Err() // whatever it was that could not be done after that
	}
	if err != nil {
		return err
	}
	b.runner = r
	whom := strings.Join(r.Plan.ShownURLs(), ", ")
	if r.Plan.Virtual {
		whom = "computed engine " + strings.Join(r.Asked.Values("sim"), ", ")
	}
	b.progress.describe(live.About{Server: whom, Model: r.Target.ModelID, Dataset: r.Plan.DatasetName})
	b.say(fmt.Sprintf("%s, model %s, dataset %s, prompts counted by %s", whom, r.Target.ModelID, r.Plan.DatasetName, r.Counter().Name()))
	return b.publish(ctx)
}

// close lets go of the servers and the agents.
func (b *benchRun) close(ctx context.Context) {
	b.disconnect()
	b.agents.close() //nolint:contextcheck // agents are told that it is over, whatever ended it
	b.unpublish(ctx)
}

// disconnect lets go of the servers.
func (b *benchRun) disconnect() {
	b.runner.Close()
	b.progress.stop()
}

// open makes the directory of the run, when its first level is about to begin:
// a run that comes to nothing leaves nothing behind.
func (b *benchRun) open() error {
	if b.keep == nil {
		keep, err := store.Create(b.runner.Plan.RunsDir, b.manifest(), b.env.secrets.SweepJSON)
		if err != nil {
			return err
		}
		if err := b.keepIn(keep); err != nil {
			return err
		}
	}
	if tell := b.opened; tell != nil {
		b.opened = nil
		return tell(b.keep.Dir())
	}
	return nil
}

// keepIn settles where the run is kept.
func (b *benchRun) keepIn(keep *store.Writer) error {
	b.keep = keep
	b.env.keeps.Store(true)
	keep.Full = b.diskIsFull
	if b.runner.Plan.Virtual {
		keep.Batch()
	}
	b.progress.keep = keep.Live
	kept, err := keep.Read()
	if err != nil {
		return err
	}
	b.run.About, b.run.Records = archive.About(keep.Dir(), &kept.Manifest), b.recordsOf(archive.Requests)
	if b.board != nil {
		b.board.Name(b.run.Name)
	}
	b.say("Kept in " + keep.Dir())
	return nil
}

// Add implements tacho.Sink.
func (b *benchRun) Add(r *tacho.Record) error { return b.AddAll([]*tacho.Record{r}) }

// AddAll implements tacho.Batcher.
func (b *benchRun) AddAll(rs []*tacho.Record) error {
	for _, r := range rs {
		r.Stage += b.base
		if b.board != nil {
			_ = b.board.Add(r) // never fails
		}
	}
	return b.keep.AddAll(rs)
}

// Close implements tacho.Sink.
func (b *benchRun) Close() error { return b.keep.Close() }

// tokenizers are where Hugging Face's own tools have them, so that what those
// have downloaded is found.
func tokenizers(env *Env) run.Tokenizers {
	t := run.Tokenizers{
		Home: env.Getenv("HF_HOME"), Cache: env.Getenv("HF_HUB_CACHE"), Endpoint: env.Getenv("HF_ENDPOINT"),
		Token: env.Getenv("HF_TOKEN"), Online: !isTrue(env.Getenv("HF_HUB_OFFLINE")),
	}
	if cache, err := os.UserCacheDir(); err == nil {
		t.Tables = filepath.Join(cache, "tacho")
		if t.Home == "" {
			t.Home = filepath.Join(cache, "huggingface")
		}
	}
	return t
}

// isTrue reads a switch of the environment as Hugging Face's tools do; what
// they do not know is taken for a yes, for it was set for some reason.
func isTrue(value string) bool {
	return !slices.Contains([]string{"", "0", "OFF", "NO", "FALSE"}, strings.ToUpper(value))
}

func randomSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// benchRun is one run of bench as it goes on. It is the sink of its records.
type benchRun struct {
	env      *Env
	given    json.RawMessage // the plan, as it was
	around   run.Env
	runner   *run.Runner
	agents   *agents    // nil where there are none
	live     *live.Feed // of the level that runs
	keep     *store.Writer
	progress *progress
	run      outcome.Run
	terse    bool                    // levels are not shown as they end, nor as a curve: who measures has words of his own
	outer    outcome.Coordinates     // what sets these levels apart from others of the run
	base     int                     // how many others there are
	board    *publish.Board          // what monitoring sees; nil where nobody looks
	outlets  []func(context.Context) // that stop showing it
	opened   func(dir string) error  // told, once for each server, where the run is; may be nil
	failed   error                   // what could not be shown or kept
	stop     context.CancelCauseFunc
}

func (b *benchRun) say(line string) {
	b.progress.clear()
	_, _ = fmt.Fprintln(b.env.Stderr, line) // a broken stderr stops nothing
}

// end keeps what a level came to, shows it, and writes its result file.
func (b *benchRun) end(l *outcome.Level) {
	if b.board != nil {
		b.board.End()
	}
	l = b.placed(l)
	b.progress.end(l)
	b.note(b.keep.End(keptLevel(l)))
	b.note(b.keep.Samples(l.Index, l.Samples))
	l.Records = b.recordsOf(func(kept *store.Run) iter.Seq2[*tacho.Record, error] { return archive.Level(kept, l.Index) })
	b.run.Levels = append(b.run.Levels, *l)
	if len(b.run.Levels) == 1 {
		b.run.Began = l.Epoch
	}
	if b.terse {
		return
	}
	if !b.brief() {
		b.note(report.TextLevel(b.env.Stdout, &b.run, l, b.runner.Plan.ReportStyle))
	}
	b.note(b.saveResult(l))
}

func (b *benchRun) note(err error) {
	if err != nil && (b.failed == nil || !strings.Contains(b.failed.Error(), err.Error())) {
		b.failed = errors.Join(b.failed, err)
	}
}

// conclude shows the table of levels, keeps the summary, and says what to exit
// with.
func (b *benchRun) conclude(ctx context.Context, err error) error {
	if b.keep == nil { // it came to nothing
		return cmp.Or(ctx.Err(), err)
	}
	err, closed := b.summarize(ctx, err), b.keep.Close()
	if p := &b.runner.Plan; p.Dialect != "" && closed == nil && len(b.run.Levels) > 0 {
		again := reportOptions{dialect: p.Dialect}
		closed = again.print(b.env, []string{b.keep.Dir()})
	}
	if err != nil && closed != nil && strings.Contains(err.Error(), closed.Error()) {
		return err
	}
	return errors.Join(err, closed)
}

func (b *benchRun) summarize(ctx context.Context, err error) error {
	b.run.Order()
	r := report.Report{Runs: []outcome.Run{b.run}}
	if b.env.seen != nil {
		b.env.seen(&b.run)
	}
	if len(b.run.Levels) > 0 {
		b.note(b.present(&r))
	}
	var full diskFull
	if errors.As(context.Cause(ctx), &full) {
		return errors.Join(full, b.failed)
	}
	if ctx.Err() != nil {
		return errors.Join(b.failed, &exitError{code: stopCode(ctx)})
	}
	if err != nil {
		return errors.Join(err, b.failed)
	}
	b.note(b.keep.Summary(r.Document()))
	if b.failed != nil {
		return b.failed
	}
	err = gateOf(&b.runner.Plan).judge(b.env, []outcome.Run{b.run})
	var gated *exitError
	if err != nil && !errors.As(err, &gated) {
		return err
	}
	for i := range b.run.Levels {
		if b.run.Levels[i].Summary.Verdict.Severity == metric.Invalid {
			return &exitError{code: exitInvalid}
		}
	}
	return err
}
