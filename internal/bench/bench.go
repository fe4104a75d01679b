// Package bench runs a plan and stores its results: a directory with records, an
// HTML report and the files the plan asks for. The command uses it directly. Other
// modules use the public package bench, because they cannot name internal types.
package bench

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/publish"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/report"
	"github.com/tacho-bench/tacho/store"
)

// Options configure a run in addition to its plan. The zero value measures a
// server without output.
type Options struct {
	Env     run.Env  // key, network, tokenizers, agents, observer; a nil Serve starts the engine of a plan in this process
	Args    []string // command line, for the manifest
	Cluster string   // name of the run for its agents
	Resume  string   // directory of an interrupted run to continue; empty for a new run

	Print  func(f report.Format, r *report.Report) error                   // prints reports for standard output
	Listen func(ctx context.Context, address string) (net.Listener, error) // nil listens on the network
	Client func() (client *http.Client, done func())                       // returns HTTP clients; nil uses default clients
	Getenv func(string) string                                             // reads OpenTelemetry's variables; nil ignores them
}

// A Bench is a run in progress. It is the sink of the records and the observer of the
// runner.
type Bench struct {
	Runner  *run.Runner
	Keep    *store.Writer // store of the run; nil before the first level
	Outcome outcome.Run   // results so far

	outer   outcome.Coordinates // coordinates of the server settings
	base    int                 // number of levels with other server settings
	o       Options
	shown   live.Observer           // shows the run to the user
	terse   bool                    // levels are probes of a search, without result files
	stop    context.CancelCauseFunc // ends the run if it cannot be stored
	given   json.RawMessage         // the original plan
	to      *publish.Collector      // receiver of metrics and spans; nil if there is none
	board   *publish.Exporter       // metrics for monitoring; nil if disabled
	outlets []func(context.Context) // functions that stop publishing
	failed  error                   // errors of output and storage
}

// Run checks a plan, measures its levels and returns their results. The run is
// stored below the plan's RunsDir. If ctx is canceled, Run returns the finished
// levels and ctx's error.
func Run(ctx context.Context, p plan.Plan, o Options) (outcome.Run, error) {
	return Measure(ctx, p, o, (*Bench).Run)
}

// Measure runs a plan like Run. measure measures the levels.
func Measure(ctx context.Context, p plan.Plan, o Options, measure func(*Bench, context.Context) error) (outcome.Run, error) {
	var before *outcome.Run
	if o.Resume != "" {
		var err error
		var seed uint64
		if before, seed, err = ReadResumed(o.Resume, &p, o.Env.Secrets); err != nil {
			return outcome.Run{}, err
		}
		o.Env.Random = seed
	}
	b, err := Open(ctx, p, o)
	if err != nil {
		return outcome.Run{}, err
	}
	defer b.Release(ctx)
	if err := b.Publish(ctx); err != nil {
		return outcome.Run{}, err
	}
	if before != nil {
		if _, err := b.Resume(o.Resume, before); err != nil {
			return outcome.Run{}, err
		}
	}
	b.Note(measure(b, ctx))
	return b.finish(ctx)
}

// finish stores the results and returns them.
func (b *Bench) finish(ctx context.Context) (outcome.Run, error) {
	if b.Keep != nil {
		b.Outcome.Order()
		r := &report.Report{Runs: []outcome.Run{b.Outcome}}
		b.Note(b.WriteFiles(r))
		if ctx.Err() == nil && b.failed == nil {
			b.Note(b.Keep.Summary(r.Document()))
		}
		b.Note(b.Keep.Close())
	}
	return b.Outcome, b.failed
}

// Run measures the levels of the plan that were not measured with these server settings.
func (b *Bench) Run(ctx context.Context) error {
	return b.stoppable(ctx, func(ctx context.Context) error { return b.Runner.Run(ctx, b, b.Outcome.Levels[b.base:]...) })
}

// stoppable measures levels until they end or cannot be stored.
func (b *Bench) stoppable(ctx context.Context, measure func(context.Context) error) error {
	ctx, b.stop = context.WithCancelCause(ctx)
	defer b.stop(nil)
	err := measure(ctx)
	var full DiskFull
	if errors.As(context.Cause(ctx), &full) {
		return full
	}
	return err
}

// Open checks a plan and connects to its servers. Nothing is sent or written
// yet.
func Open(ctx context.Context, p plan.Plan, o Options) (*Bench, error) {
	b, err := New(&p, o)
	if err == nil {
		err = b.Connect(ctx, p, nil)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// New checks a plan. Connect connects to its servers.
func New(p *plan.Plan, o Options) (*Bench, error) {
	if o.Env.Secrets == nil {
		o.Env.Secrets = &redact.Secrets{}
	}
	if o.Listen == nil {
		o.Listen = func(ctx context.Context, address string) (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", address)
		}
	}
	if o.Client == nil {
		o.Client = func() (*http.Client, func()) { return &http.Client{}, func() {} }
	}
	if o.Env.Serve == nil {
		o.Env.Serve = serveSim
	}
	if o.Env.Observer == nil {
		o.Env.Observer = live.NopObserver{}
	}
	if o.Env.Random == 0 {
		o.Env.Random = rand.Uint64()
	}
	if err := Check(p, o.Env.Observer.Message); err != nil {
		return nil, err
	}
	given, err := json.Marshal(new(p.Public(o.Env.Secrets)))
	if err != nil {
		return nil, err
	}
	b := &Bench{o: o, shown: o.Env.Observer, given: given}
	b.o.Env.Observer = b
	b.to, err = b.collector(p)
	return b, err
}

// Connect connects to the servers of a plan. serve starts the server of the plan and sets
// its address; nil starts the simulated engine, if the plan has one.
func (b *Bench) Connect(ctx context.Context, p plan.Plan, serve func(*plan.Plan, uint64) (func(), error)) error {
	env := b.o.Env
	if p.Traceparent > 0 {
		env.Trace = rand.Uint64() // requests of the next server may have the same ids
	}
	if serve != nil {
		env.Serve = serve
	}
	env.Watch = env.Watch || p.MetricsListen != "" || b.to != nil
	r, err := run.Open(ctx, p, env)
	if ctx.Err() != nil {
		if err == nil {
			r.Close()
		}
		return ctx.Err() // the cause of all other errors
	}
	if err != nil {
		return err // the previous runner still describes the results
	}
	b.Runner = r
	return nil
}

// Release closes the connections to the servers and stops publishing metrics.
func (b *Bench) Release(ctx context.Context) {
	b.Runner.Close()
	b.Unpublish(ctx)
}

// Message implements live.Observer.
func (b *Bench) Message(text string) { b.shown.Message(text) }

// Progress implements live.Observer.
func (b *Bench) Progress(file string, done, all int64) { b.shown.Progress(file, done, all) }

// LevelEnded stores the results of a level and writes its result file.
func (b *Bench) LevelEnded(l *outcome.Level) {
	if b.board != nil {
		b.board.End()
	}
	l = b.placed(l)
	b.Note(b.Keep.End(keptLevel(l)))
	b.Note(b.Keep.Samples(l.Index, l.Samples))
	l.Records = b.recordsOf(func(kept *store.Run) iter.Seq2[*tacho.Record, error] { return archive.Level(kept, l.Index) })
	b.Outcome.Levels = append(b.Outcome.Levels, *l)
	if len(b.Outcome.Levels) == 1 {
		b.Outcome.Began = l.Epoch
	}
	b.shown.LevelEnded(l)
	if !b.terse {
		b.Note(b.saveResult(l))
	}
}

// WriteFiles writes the HTML report, the text report and the reports the plan
// asks for.
func (b *Bench) WriteFiles(r *report.Report) error {
	if len(b.Outcome.Levels) == 0 {
		return nil
	}
	var page error
	if !b.Runner.Plan.NoHTML {
		page = b.writePage(r)
	}
	return errors.Join(page, b.writeText(r), b.writeOutputs(r))
}

// Note records an error of output or storage.
func (b *Bench) Note(err error) {
	if err != nil && (b.failed == nil || !strings.Contains(b.failed.Error(), err.Error())) {
		b.failed = errors.Join(b.failed, err)
	}
}

// Failed returns the errors of output and storage, or nil.
func (b *Bench) Failed() error { return b.failed }

// Add implements tacho.Sink.
func (b *Bench) Add(r *tacho.Record) error { return b.AddAll([]*tacho.Record{r}) }
