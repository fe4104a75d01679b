package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nuid"
	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/internal/search"
	"github.com/tacho-bench/tacho/internal/terminal"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/report"
)

func newBench(env *Env) *cobra.Command {
	p := plan.Default()
	return benchCommand(&p, env)
}

// benchCommand returns the bench command with an initial plan; do executes it.
func benchCommand(p *plan.Plan, env *Env) *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure latency and throughput of a server under a known load",
		Long: `bench sends requests to a server at known times and reports latency and
throughput.

Flags have the same names and meanings as in "vllm bench serve"; flags marked with
+ are added by tacho. Dashes and underscores are equal, and flags may be
abbreviated if unambiguous.

Any flag with a number or a choice also accepts a list (1,2,4 or 1,2,...,4096;
openai,openai-chat) and runs one level per value, or per combination of several
lists. --repeat runs each level several times.

The API key comes from OPENAI_API_KEY or --api-key-file. --api-key works too, but
other users of this machine can see it.

Without a server, bench measures the built-in simulated engine, as with --sim.

--dry-run prints the plan as YAML and sends nothing. --plan reads such a file, or
the plan of a stored run; flags override it. --resume continues an interrupted
run.

Every run is stored below --runs-dir with an HTML report (report.html); "tacho
report DIR" prints it again.`,
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
			if err := nameReplay(p); err != nil {
				return usage(err)
			}
			if !namesServer(p) {
				defaultScenario(p)
			}
			if err := chooseTarget(env, p); err != nil {
				return err
			}
			return runBench(cmd.Context(), env, *p, o)
		},
	}
	cmd.Flags().SortFlags = false
	o.bind(cmd.Flags(), "print the plan and its levels without sending requests")
	cmd.Flags().StringArrayVar(&o.compare, "compare", nil, "compare two runs or results without measuring, like tacho compare")
	cmd.Flags().StringVar(&o.resume, "resume", "", "continue the interrupted run in this directory; complete levels are kept; "+lastRun+" is the last run below --runs-dir, or a new run if that is complete")
	bind(cmd.Flags(), p)
	return cmd
}

// benchOptions are the flags of bench besides the plan.
type benchOptions struct {
	planFlags
	compare []string     // two results to compare instead of measuring
	resume  string       // directory of the run to continue
	resumed *outcome.Run // its results so far
	seed    *uint64      // its seed
}

// runBench executes the plan and shows the results. With --dry-run it prints
// the plan.
func runBench(ctx context.Context, env *Env, p plan.Plan, o benchOptions) error {
	if o.dry {
		if text := sweepEstimate(&p); text != "" {
			_, _ = fmt.Fprintln(env.Stderr, text) // informational
		}
		return dryRun(env, p)
	}
	return measure(ctx, env, p, o.seed, func(ctx context.Context, b *benchRun) error {
		if err := b.resume(&o); err != nil {
			return err
		}
		err := b.bench.Run(ctx)
		b.progress.Stop()
		return b.conclude(ctx, err)
	})
}

// measure prepares a run, calls do and cleans up.
func measure(ctx context.Context, env *Env, p plan.Plan, seed *uint64, do func(context.Context, *benchRun) error) error {
	b, err := newBenchRun(env, &p, seed)
	if err != nil {
		return err
	}
	defer b.free(ctx)
	if err := b.bench.Connect(ctx, p, nil); err != nil {
		return err
	}
	defer b.bench.Runner.Close()
	if err := b.opened(ctx); err != nil {
		return err
	}
	return do(ctx, b)
}

// dryRun prints the plan without sending requests.
func dryRun(env *Env, p plan.Plan) error {
	if err := bench.Check(&p, nil); err != nil {
		return err
	}
	if _, _, err := apiKey(env, &p); err != nil {
		return usage(err)
	}
	return showPlan(env, p, p.Public(env.secrets))
}

// newBenchRun checks a run and its output. seed is used if the plan has none; nil chooses a
// random seed.
func newBenchRun(env *Env, p *plan.Plan, seed *uint64) (*benchRun, error) {
	key, keyFrom, err := apiKey(env, p)
	if err != nil {
		return nil, usage(err)
	}
	if err := env.mayReceive(p, key, keyFrom); err != nil {
		return nil, err
	}
	if env.Network == nil { // with the kernel's clock
		engine.Tune()
	}
	b := &benchRun{env: env, progress: newProgress(env, p)}
	runEnv := run.Env{APIKey: key, KeyFrom: keyFrom, Secrets: env.secrets, Proxy: http.ProxyFromEnvironment, Dial: env.dial(), Server: env.Server, Tokenizers: tokenizers(env)}
	if seed != nil {
		runEnv.Random = *seed
	}
	runEnv.Replay = func(name string) (*run.Replay, error) { return openReplay(env, name) }
	runEnv.Observer, runEnv.Hold, runEnv.Watch = b, b.progress.Hold, b.progress.On()
	runEnv.Serve = func(p *plan.Plan, seed uint64) (func(), error) { return startSim(env, p, seed) }
	o := bench.Options{Args: env.Args, Print: env.print, Listen: env.listen, Client: env.client, Getenv: env.Getenv}
	if p.Agents > 0 {
		b.agents = &agents{env: env, plan: &p.Machines, runs: p.RunsDir, say: b.Message, name: nuid.Next()}
		for _, server := range p.BaseURLs() {
			b.agents.to += " --allow-target " + redact.URL(server)
		}
		runEnv.Agents, o.Cluster = b.agents, b.agents.name
	}
	o.Env = runEnv
	if b.bench, err = bench.New(p, o); err != nil {
		b.progress.Stop()
		return nil, err
	}
	return b, nil
}

// opened prints the target of the run and starts publishing metrics.
func (b *benchRun) opened(ctx context.Context) error {
	r := b.bench.Runner
	b.progress.Control(r)
	server := strings.Join(r.Plan.ShownURLs(), ", ")
	if r.Plan.Virtual {
		server = "simulated engine " + strings.Join(r.Asked.Values("sim"), ", ")
	}
	b.progress.State.Describe(live.About{Server: server, Model: r.Target.ModelID, Dataset: r.Plan.DatasetName, Simulated: r.Target.Simulated && !r.Plan.Virtual})
	b.Message(fmt.Sprintf("%s, model %s, dataset %s, token counts by %s", server, r.Target.ModelID, r.Plan.DatasetName, r.Counter().Name()))
	return b.bench.Publish(ctx)
}

// free disconnects from agents, stops publishing metrics and leaves the view.
func (b *benchRun) free(ctx context.Context) {
	b.progress.Stop()
	b.agents.close(b.env.restarts(ctx)) //nolint:contextcheck // agents are released after ctx was canceled, too
	b.bench.Unpublish(ctx)
}

// tokenizers uses the directories of Hugging Face's tools, so that their
// downloads are found.
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

// isTrue parses a boolean variable like Hugging Face's tools. Unknown values
// are true, because the user set the variable for a reason.
func isTrue(value string) bool {
	return !slices.Contains([]string{"", "0", "OFF", "NO", "FALSE"}, strings.ToUpper(value))
}

// benchRun is a run of bench with its terminal.
type benchRun struct {
	bench    *bench.Bench
	env      *Env
	agents   *agents // nil without agents
	progress *terminal.Progress
	search   *search.Search // levels are its probes; nil without a search
	settings int            // number of server settings that vary
	prepared func() error   // called before the next level; may be nil
	answer   func() error   // prints the result of a search instead of the levels
}

// Message implements live.Observer.
func (b *benchRun) Message(text string) { b.progress.Message(text) }

// Progress implements live.Observer.
func (b *benchRun) Progress(file string, done, all int64) { b.progress.Progress(file, done, all) }

// LevelPrepared implements live.Observer. The run directory exists.
func (b *benchRun) LevelPrepared() error {
	b.env.keeps.Store(true)
	b.progress.KeepWith(b.bench.Keep.Live)
	if b.prepared != nil {
		defer func() { b.prepared = nil }()
		return b.prepared()
	}
	return nil
}

// LevelStarted implements live.Observer.
func (b *benchRun) LevelStarted(l *outcome.Level, feed *live.Feed) error {
	if b.search != nil {
		b.progress.Search(b.search.Left())
	}
	b.progress.Begin(b.bench.Runner, b.bench.Runner.Speed().Stretch, l, feed)
	return nil
}

// LevelEnded prints a finished level. Several levels are one screen at the end, unless the command
// line is that of vLLM: its callers may parse the blocks. A search prints its probes itself.
func (b *benchRun) LevelEnded(l *outcome.Level) {
	switch b.progress.End(l); {
	case b.search != nil:
	case !b.brief():
		b.bench.Note(b.printLevel(report.TextLevel, l))
	case b.blocks():
		b.bench.Note(b.printLevel(report.ClassicLevel, l))
	}
}

// conclude prints the table of levels, stores the summary and returns the exit
// status.
func (b *benchRun) conclude(ctx context.Context, err error) error {
	if b.bench.Keep == nil { // nothing was measured
		return cmp.Or(ctx.Err(), err)
	}
	err, closed := b.summarize(ctx, err), b.bench.Keep.Close()
	if p := &b.bench.Runner.Plan; p.Dialect != "" && closed == nil && len(b.bench.Outcome.Levels) > 0 {
		again := reportOptions{dialect: p.Dialect}
		closed = again.print(b.env, []string{b.bench.Keep.Dir()})
	}
	if err != nil && closed != nil && strings.Contains(err.Error(), closed.Error()) {
		return err
	}
	return errors.Join(err, closed)
}

func (b *benchRun) summarize(ctx context.Context, err error) error {
	b.bench.Outcome.Order()
	r := report.Report{Runs: []outcome.Run{b.bench.Outcome}}
	if b.env.seen != nil {
		b.env.seen(&b.bench.Outcome)
	}
	if len(b.bench.Outcome.Levels) > 0 {
		b.bench.Note(b.present(&r))
	}
	var full bench.DiskFull
	if errors.As(err, &full) {
		return errors.Join(full, b.bench.Failed())
	}
	if ctx.Err() != nil {
		return errors.Join(b.bench.Failed(), &exitError{code: stopCode(ctx)})
	}
	if err != nil {
		return errors.Join(err, b.bench.Failed())
	}
	b.bench.Note(b.bench.Keep.Summary(r.Document()))
	if b.bench.Failed() != nil {
		return b.bench.Failed()
	}
	p := &b.bench.Runner.Plan
	g := gate{conditions: p.FailIf, unjudged: p.AllowUnjudged, junit: p.JUnit}
	err = g.judge(b.env, []outcome.Run{b.bench.Outcome})
	var gated *exitError
	if err != nil && !errors.As(err, &gated) {
		return err
	}
	if anyInvalid([]outcome.Run{b.bench.Outcome}) {
		return &exitError{code: exitInvalid}
	}
	return err
}
