package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nuid"
	"github.com/spf13/cobra"

	"tacho/bench"
	"tacho/internal/redact"
	"tacho/live"
	"tacho/metric"
	"tacho/outcome"
	"tacho/plan"
	"tacho/report"
	"tacho/run"
	"tacho/store"
)

func newBench(env *Env) *cobra.Command {
	p := plan.Default()
	return benchCommand(&p, env, runBench)
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

// runBench carries out the plan and shows what came of it; dry, it shows the plan.
func runBench(ctx context.Context, env *Env, p plan.Plan, o benchOptions) error {
	if o.dry {
		return dryRun(env, p)
	}
	return measure(ctx, env, p, o.seed, func(ctx context.Context, b *benchRun) error {
		if err := b.resume(&o); err != nil {
			return err
		}
		err := b.Runner.Run(ctx, b, b.End, b.Outcome.Levels...)
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
	ctx, b.Stop = context.WithCancelCause(ctx)
	defer b.Stop(nil)
	return do(ctx, b)
}

// dryRun shows the plan and sends nothing.
func dryRun(env *Env, p plan.Plan) error {
	if err := bench.Check(&p, nil); err != nil {
		return err
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
	key, keyFrom, err := apiKey(env, &p)
	if err != nil {
		return nil, usage(err)
	}
	env.tune()
	b := &benchRun{env: env, progress: newProgress(env, &p)}
	around := run.Env{APIKey: key, KeyFrom: keyFrom, Secrets: env.secrets, Proxy: http.ProxyFromEnvironment, Dial: env.dial(), Server: env.Server, Random: *cmp.Or(seed, new(randomSeed())), Tokenizers: tokenizers(env)}
	around.Replay = func(name string) (*run.Replay, error) { return openReplay(env, name) }
	if serve == nil {
		serve = func(p *plan.Plan, seed uint64) (func(), error) { return startSim(env, p, seed) }
	}
	o := bench.Options{
		Args: env.Args, Say: b.say, Ready: b.progress.ready, Fetch: b.progress.fetch, Serve: serve, Kept: b.kept, Watch: b.progress.on(),
		Begin: func(l *outcome.Level, feed *live.Feed) { b.progress.begin(b.Runner, l.Epoch, feed) }, End: b.progress.end, Done: b.showLevel,
		Print: env.print, Listen: env.listen, Client: env.client,
	}
	if p.Agents > 0 {
		b.agents = &agents{env: env, plan: &p.Machines, runs: p.RunsDir, say: b.say, name: nuid.Next()}
		for _, server := range p.BaseURLs() {
			b.agents.to += " --allow-target " + redact.URL(server)
		}
		around.Agents, o.Cluster = b.agents, b.agents.name
	}
	o.Env = around
	if b.Bench, err = bench.Open(ctx, p, o); err == nil {
		if err = b.opened(ctx); err != nil {
			b.Release(ctx)
		}
	}
	if err != nil {
		b.progress.stop()
		return nil, err
	}
	return b, nil
}

// reconnect opens the next server of a sweep.
func (b *benchRun) reconnect(ctx context.Context, p plan.Plan, serve func(*plan.Plan, uint64) (func(), error)) error {
	if err := b.Connect(ctx, p, serve); err != nil {
		return err
	}
	return b.opened(ctx)
}

// opened tells what is measured, and opens the pages of the run.
func (b *benchRun) opened(ctx context.Context) error {
	r := b.Runner
	whom := strings.Join(r.Plan.ShownURLs(), ", ")
	if r.Plan.Virtual {
		whom = "computed engine " + strings.Join(r.Asked.Values("sim"), ", ")
	}
	b.progress.describe(live.About{Server: whom, Model: r.Target.ModelID, Dataset: r.Plan.DatasetName})
	b.say(fmt.Sprintf("%s, model %s, dataset %s, prompts counted by %s", whom, r.Target.ModelID, r.Plan.DatasetName, r.Counter().Name()))
	return b.Publish(ctx)
}

// close lets go of the servers and the agents.
func (b *benchRun) close(ctx context.Context) {
	b.disconnect()
	b.agents.close() //nolint:contextcheck // agents are told that it is over, whatever ended it
	b.Unpublish(ctx)
}

// disconnect lets go of the servers.
func (b *benchRun) disconnect() {
	b.Runner.Close()
	b.progress.stop()
}

// kept notes that the run has a directory.
func (b *benchRun) kept(w *store.Writer) {
	b.env.keeps.Store(true)
	b.progress.keep = w.Live
}

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

// benchRun is a run of bench with its terminal.
type benchRun struct {
	*bench.Bench
	env      *Env
	agents   *agents // nil if there are none
	progress *progress
}

func (b *benchRun) say(line string) {
	b.progress.clear()
	_, _ = fmt.Fprintln(b.env.Stderr, line) // a broken stderr stops nothing
}

// showLevel shows a level that is over, unless all are shown at the end.
func (b *benchRun) showLevel(l *outcome.Level) {
	if !b.brief() {
		b.Note(report.TextLevel(b.env.Stdout, &b.Outcome, l, b.Runner.Plan.ReportStyle))
	}
}

// conclude shows the table of levels, keeps the summary, and says what to exit
// with.
func (b *benchRun) conclude(ctx context.Context, err error) error {
	if b.Keep == nil { // it came to nothing
		return cmp.Or(ctx.Err(), err)
	}
	err, closed := b.summarize(ctx, err), b.Keep.Close()
	if p := &b.Runner.Plan; p.Dialect != "" && closed == nil && len(b.Outcome.Levels) > 0 {
		again := reportOptions{dialect: p.Dialect}
		closed = again.print(b.env, []string{b.Keep.Dir()})
	}
	if err != nil && closed != nil && strings.Contains(err.Error(), closed.Error()) {
		return err
	}
	return errors.Join(err, closed)
}

func (b *benchRun) summarize(ctx context.Context, err error) error {
	b.Outcome.Order()
	r := report.Report{Runs: []outcome.Run{b.Outcome}}
	if b.env.seen != nil {
		b.env.seen(&b.Outcome)
	}
	if len(b.Outcome.Levels) > 0 {
		b.Note(b.present(&r))
	}
	var full bench.DiskFull
	if errors.As(context.Cause(ctx), &full) {
		return errors.Join(full, b.Failed())
	}
	if ctx.Err() != nil {
		return errors.Join(b.Failed(), &exitError{code: stopCode(ctx)})
	}
	if err != nil {
		return errors.Join(err, b.Failed())
	}
	b.Note(b.Keep.Summary(r.Document()))
	if b.Failed() != nil {
		return b.Failed()
	}
	err = gateOf(&b.Runner.Plan).judge(b.env, []outcome.Run{b.Outcome})
	var gated *exitError
	if err != nil && !errors.As(err, &gated) {
		return err
	}
	for i := range b.Outcome.Levels {
		if b.Outcome.Levels[i].Summary.Verdict.Severity == metric.Invalid {
			return &exitError{code: exitInvalid}
		}
	}
	return err
}
