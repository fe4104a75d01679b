// Package bench runs a plan and keeps its result.
//
// Run is all that most programs need: it measures the levels of a plan and returns
// what they came to. Each run is a directory with its records, a page and the files
// that the plan asks for. Programs that measure levels of their own, such as the
// probes of a search, use Open and the Bench that it returns.
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

	"tacho"
	"tacho/archive"
	"tacho/internal/redact"
	"tacho/live"
	"tacho/outcome"
	"tacho/plan"
	"tacho/publish"
	"tacho/report"
	"tacho/run"
	"tacho/store"
)

// Options are what a run needs beside its plan. The zero value measures a server
// and says nothing.
type Options struct {
	Env     run.Env  // key, network, tokenizers, agents
	Args    []string // the command that asked for it, for the manifest
	Cluster string   // the name of the run among its agents
	Resume  string   // directory of a run that was cut short, to go on with; empty is none

	Say    func(line string)                                               // told what is worth knowing
	Ready  func(done, all int)                                             // prompts made ready
	Fetch  func(file string, done, all int64)                              // bytes of a file downloaded; all is -1 if it is unknown
	Serve  func(p *plan.Plan, seed uint64) (stop func(), err error)        // starts the server that a plan brings along; nil starts its simulated engine in this process
	Kept   func(w *store.Writer)                                           // the run has a directory
	Begin  func(l *outcome.Level, feed *live.Feed)                         // a level has begun
	End    func(l *outcome.Level)                                          // a level has ended
	Done   func(l *outcome.Level)                                          // the records of a level are kept
	Watch  bool                                                            // a person watches the run: count tokens as they arrive
	Print  func(f report.Format, r *report.Report) error                   // prints the reports that go to standard output
	Listen func(ctx context.Context, address string) (net.Listener, error) // nil listens on the network
	Client func() (client *http.Client, done func())                       // makes HTTP clients; nil makes ordinary ones
}

// A Bench is a run as it goes on. It is the sink of its records.
type Bench struct {
	Runner  *run.Runner
	Keep    *store.Writer // where the run is kept; nil until its first level begins
	Outcome outcome.Run   // what it came to so far
	Live    *live.Feed    // of the level that runs; nil if none did

	Outer  outcome.Coordinates     // what sets these levels apart from others of the run
	Base   int                     // how many others there are
	Terse  bool                    // levels are parts of a search: they have no result files
	Opened func(dir string) error  // told once where the run is; may be nil
	Stop   context.CancelCauseFunc // ends the run if it cannot be kept

	o       Options
	given   json.RawMessage         // the plan, as it was
	board   *publish.Board          // the figures for monitoring; nil without
	outlets []func(context.Context) // stop publishing them
	failed  error                   // what could not be shown or kept
}

// Run checks a plan, measures its levels, and returns what they came to. The run is
// kept below the plan's RunsDir. If ctx ends, the levels that finished are returned
// with ctx's error.
func Run(ctx context.Context, p plan.Plan, o Options) (outcome.Run, error) {
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
	ctx, b.Stop = context.WithCancelCause(ctx)
	defer b.Stop(nil)
	if err := b.Publish(ctx); err != nil {
		return outcome.Run{}, err
	}
	if before != nil {
		if _, err := b.Resume(o.Resume, before); err != nil {
			return outcome.Run{}, err
		}
	}
	b.Note(b.Runner.Run(ctx, b, b.End, b.Outcome.Levels...))
	b.Note(context.Cause(ctx)) // such as a full disk
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

// Open checks a plan and opens its servers. Nothing is sent or written yet.
func Open(ctx context.Context, p plan.Plan, o Options) (*Bench, error) {
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
	if o.Serve == nil {
		o.Serve = serveSim
	}
	if o.Env.Random == 0 {
		o.Env.Random = rand.Uint64()
	}
	if err := Check(&p, o.Say); err != nil {
		return nil, err
	}
	given, err := json.Marshal(new(p.Public(o.Env.Secrets)))
	if err != nil {
		return nil, err
	}
	b := &Bench{o: o, given: given}
	if err := b.Connect(ctx, p, o.Serve); err != nil {
		return nil, err
	}
	return b, nil
}

// Connect opens the servers of a plan. Serve starts the server that it brings along.
func (b *Bench) Connect(ctx context.Context, p plan.Plan, serve func(*plan.Plan, uint64) (func(), error)) error {
	o := &b.o
	hooks := run.Hooks{Say: o.Say, Ready: o.Ready, Fetch: o.Fetch, Serve: serve, Open: b.open, Begin: b.begin, Watch: o.Watch || p.MetricsListen != "" || p.OTLP != ""}
	r, err := run.Open(ctx, p, o.Env, hooks)
	if ctx.Err() != nil {
		if err == nil {
			r.Close()
		}
		return ctx.Err() // it explains every other error
	}
	if err != nil {
		return err // the runner before, if there was one, still tells what was measured
	}
	b.Runner = r
	return nil
}

// Release closes the connections to the servers and the pages for monitoring.
func (b *Bench) Release(ctx context.Context) {
	b.Runner.Close()
	b.Unpublish(ctx)
}

func (b *Bench) say(line string) {
	if b.o.Say != nil {
		b.o.Say(line)
	}
}

// End keeps what a level came to, and writes its result file.
func (b *Bench) End(l *outcome.Level) {
	if b.board != nil {
		b.board.End()
	}
	l = b.placed(l)
	if b.o.End != nil {
		b.o.End(l)
	}
	b.Note(b.Keep.End(keptLevel(l)))
	b.Note(b.Keep.Samples(l.Index, l.Samples))
	l.Records = b.recordsOf(func(kept *store.Run) iter.Seq2[*tacho.Record, error] { return archive.Level(kept, l.Index) })
	b.Outcome.Levels = append(b.Outcome.Levels, *l)
	if len(b.Outcome.Levels) == 1 {
		b.Outcome.Began = l.Epoch
	}
	if b.Terse {
		return
	}
	if b.o.Done != nil {
		b.o.Done(l)
	}
	b.Note(b.saveResult(l))
}

// WriteFiles writes the page, the text and the reports that the plan asks for.
func (b *Bench) WriteFiles(r *report.Report) error {
	if len(b.Outcome.Levels) == 0 {
		return nil
	}
	var page error
	if !b.Runner.Plan.NoHTML {
		page = b.writePage(r)
	}
	return errors.Join(page, b.writeText(r), b.writeOrders(r))
}

// Note remembers what could not be shown or kept.
func (b *Bench) Note(err error) {
	if err != nil && (b.failed == nil || !strings.Contains(b.failed.Error(), err.Error())) {
		b.failed = errors.Join(b.failed, err)
	}
}

// Failed is what could not be shown or kept; nil is nothing.
func (b *Bench) Failed() error { return b.failed }

// Add implements tacho.Sink.
func (b *Bench) Add(r *tacho.Record) error { return b.AddAll([]*tacho.Record{r}) }
