// Package run carries out a plan: it finds the server, makes the workload
// ready, and runs the levels one after the other.
package run

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"tacho"
	"tacho/backend"
	"tacho/engine"
	"tacho/instrument"
	"tacho/internal/redact"
	"tacho/metric"
	"tacho/pace"
	"tacho/token"
	"tacho/transport"
	"tacho/workload"
)

// Env is what a run needs of the world around it.
type Env struct {
	APIKey  string // sent as a bearer token
	KeyFrom string // where it comes from, for errors
	// Secrets learn those of the plan, and are kept out of all that the run keeps
	// or says. Nil is none that anybody else knows.
	Secrets *redact.Secrets
	Proxy   func(*http.Request) (*url.URL, error)
	Random  uint64 // what to seed with when the plan does not say

	Tokenizers Tokenizers
}

// Hooks are told how a run goes. All may be nil.
type Hooks struct {
	Say   func(line string)                      // something worth knowing
	Ready func(done, all int)                    // prompts made ready
	Fetch func(file string, done, all int64)     // bytes of a file downloaded; all is -1 while nobody knows
	Begin func(Stage, *engine.Live) error        // a level begins
	Read  func(Stage, []instrument.Sample) error // what the servers' metrics pages said
	End   func(Stage, *metric.Summary)           // it ended
}

// A Stage is a level that runs.
type Stage struct {
	Level
	Epoch     time.Time
	Monotonic float64 // the monotonic clock at Epoch, in seconds
	Speed     Speed   // of the engine's time against ours
	Config    metric.Config

	sharing *workload.Sharing // what prompts of it have in common
}

// A Runner carries out one plan against one server.
type Runner struct {
	Plan    Plan
	Seed    uint64
	Model   string // as requests name it
	ModelID string // as people know it
	Counter token.Counter
	Servers []Server // what the servers say of themselves
	GPUs    GPUs     // what they run on, as far as anybody tells

	env        Env
	tokenizer  *token.Tokenizer    // the model's own, if it is at hand
	template   *token.ChatTemplate // likewise
	kind       backend.Kind
	clients    []*transport.Client // one for each server
	server     backend.Server
	backend    tacho.Backend
	each       []tacho.Backend // the servers, one by one
	idsRefused string          // the server's words for it, where it takes no token ids
	tries      uint64          // requests sent before the measured ones, to see whether the servers answer
	limit      int             // tokens of prompt and output together; 0 unknown
	vocab      int             // tokens of the model's vocabulary, by the server; 0 unknown
	pages      *pages
	live       *engine.Live // of the level that runs
	sink       tacho.Sink   // nil before the first
	hooks      Hooks
}

// Open gets in touch with the server: what it serves, and whether it counts
// tokens. Nothing is generated yet.
func Open(ctx context.Context, p Plan, env Env, hooks Hooks) (*Runner, error) {
	if err := p.guessDataset(hooks.Say); err != nil {
		return nil, &UsageError{err}
	}
	if err := p.Validate(); err != nil {
		return nil, &UsageError{err}
	}
	env.learn(&p)
	if err := p.checkFiles(); err != nil {
		return nil, &UsageError{err}
	}
	p.takeVersion()
	r := &Runner{Plan: p, Seed: env.Random, env: env, live: &engine.Live{}, hooks: hooks}
	if p.Seed != nil {
		r.Seed = *p.Seed
	}
	r.drawPrefix()
	var err error
	if err := r.meet(ctx); err != nil {
		r.Close()
		return nil, err
	}
	if err := r.findModel(ctx); err != nil {
		r.Close()
		return nil, err
	}
	if err := r.findTokenizer(ctx); err != nil {
		r.Close()
		return nil, err
	}
	if r.backend, r.server, err = r.newBackend(true); err != nil {
		r.Close()
		return nil, &UsageError{err}
	}
	if r.limit == 0 {
		r.findLimit(ctx)
	}
	r.findPages(ctx)
	r.describe(ctx)
	if err := r.findCounter(ctx); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// A UsageError is a plan that cannot be carried out as it is written.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Close lets go of the connections.
func (r *Runner) Close() {
	for _, c := range r.clients {
		c.Close()
	}
}

func (r *Runner) header() (http.Header, error) {
	h := http.Header{}
	for _, e := range r.Plan.Header {
		key, value, ok := strings.Cut(e, "=")
		if !ok || key == "" || strings.ContainsAny(key, ": \t\"") {
			return nil, errors.New("--header: write KEY=VALUE")
		}
		h.Set(key, value)
	}
	return h, nil
}

// Run runs all levels. It opens the sink when the first of them begins and all
// is known to be well. What it keeps is told to the sink and the hooks; a
// stopped run returns ctx's error after the summary of what finished.
func (r *Runner) Run(ctx context.Context, open func() (tacho.Sink, error)) error {
	if r.Plan.ReadyCheck == 0 {
		if err := r.warm(ctx, len(r.clients), 0); err != nil {
			return r.stopped(ctx, r.unreachable(err))
		}
	}
	for _, l := range r.Plan.Levels() {
		if err := r.level(ctx, l, open); err != nil {
			return err
		}
	}
	return nil
}

// seedOf is the seed of a level: one seed fixes the run, and yet no two levels
// share prompts, for a server's cache would answer the second of them. The first
// level has the seed itself, so that it is the same as a run of its own.
func (r *Runner) seedOf(l Level) uint64 { return r.Seed + uint64(l.Index)*0x9e3779b97f4a7c15 }

// Pacer is the arrival process of a level.
func (r *Runner) Pacer(l Level) (tacho.Pacer, error) {
	p, _, err := pace.New(r.Plan.pacing(l, r.seedOf(l)))
	return p, err
}

// level runs one level.
func (r *Runner) level(ctx context.Context, l Level, open func() (tacho.Sink, error)) error {
	seed := r.seedOf(l)
	work, err := r.workload(ctx, l, seed)
	if err != nil {
		return err
	}
	pacer, err := r.arrivals(l, work)
	if err != nil {
		return &UsageError{err}
	}
	config, err := r.Plan.config(l)
	if err != nil {
		return &UsageError{err}
	}
	config.InputEstimated, config.Pools = !r.Counter.Exact(), r.kind.Pools
	if r.kind.Pools && r.Plan.PercentileMetrics == "" {
		config.Metrics = []string{metric.E2EL.Name} // there is no other latency
	}
	config.Known = slices.Concat(config.Known, r.cannot(), r.refusal())
	if err := r.fits(l, work); err != nil {
		return err
	}
	if err := r.flush(ctx); err != nil {
		return err
	}
	sharing := &workload.Sharing{}
	work = sharing.Watch(work)
	if l.Index == 0 {
		if err := r.ready(ctx, work); errors.Is(err, errAsText) {
			return r.level(ctx, l, open)
		} else if err != nil {
			return err
		}
	}
	if err := r.warmUp(ctx, l, work); err != nil {
		return err
	}
	if err := r.warm(ctx, r.connections(l), r.spares(l)); err != nil {
		return r.stopped(ctx, r.unreachable(err))
	}
	stop, err := r.profile(ctx)
	if err != nil {
		return err
	}
	defer stop()
	if r.sink == nil {
		if r.sink, err = open(); err != nil {
			return err
		}
	}
	return r.measure(ctx, Stage{Level: l, Config: config, Speed: r.Plan.Speed(), sharing: sharing}, pacer, work, r.sink)
}

// connections is how many connections a level should find ready.
func (r *Runner) connections(l Level) int {
	const most = 16_000 // below the usual limits on descriptors and ports
	n := l.Prompts
	if l.Concurrency > 0 {
		n = l.Concurrency
	} else if rate := int(l.Rate * float64(r.Plan.Speed())); l.Rate < most && (n == 0 || rate < n) {
		n = max(rate, 8) // what a second brings
	}
	return min(max(n, 1), most)
}

// spares is how many connections are kept ready beyond those in use: what an
// open loop needs when the server slows down. Other loads have all they need.
func (r *Runner) spares(l Level) int {
	if math.IsInf(l.Rate, 1) {
		return 0
	}
	return min(r.connections(l), 256)
}

// measure runs the stage itself and sums it up.
func (r *Runner) measure(ctx context.Context, s Stage, pacer tacho.Pacer, work workload.Workload, sink tacho.Sink) error {
	r.pages.readFirst(ctx)
	r.live = &engine.Live{}
	sum := &metric.Accumulator{Goodput: s.Config.Goodput}
	probes := newProbes(r, s.Index)
	var began error
	var health *health
	speed, late := s.Speed, r.simLateness(ctx)
	err := engine.Run(ctx, engine.Stage{
		Index: s.Index, Arrivals: pace.Stripe(speed.arrivals(pacer.Arrivals()), 0, 1), Limit: s.Concurrency,
		Source: speed.source(r.named(work, s.Level)), Backend: r.backend, Live: r.live, Precise: true, Count: r.answerCounter(),
		Timeout: speed.Squeeze(r.Plan.RequestTimeout.Duration()), MaxTime: speed.Squeeze(r.Plan.MaxSeconds.Duration()),
		Begin: func(epoch time.Time) {
			s.Epoch, s.Monotonic = epoch, monotonicSeconds()
			health = newHealth()
			if r.hooks.Begin != nil {
				began = r.hooks.Begin(s, r.live)
			}
			probes.start(ctx, epoch)
			r.pages.start(ctx, epoch)
		},
	}, r.counting(scrubber{stretched{tee{sum, r.Plan.keeping(sink)}, speed}, r.env.Secrets}))
	s.Config.Interrupted, s.Config.Client, s.Config.SharedShare = ctx.Err() != nil, health.end(), s.sharing.Share()
	s.Config.Known = slices.Concat(s.Config.Known, r.simulated(late, r.simLateness(context.WithoutCancel(ctx))), r.unkept())
	for _, n := range work.Notes() {
		s.Config.Known = append(s.Config.Known, metric.Reason{Code: "workload", Level: metric.Note, Text: n})
	}
	probeErr := probes.stop(scrubber{sink, r.env.Secrets})
	samples := speed.samples(r.pages.stop())
	scrubSamples(r.env.Secrets, samples)
	scrubReasons(r.env.Secrets, s.Config.Known)
	summary := sum.Summary(s.Config)
	summary.Beside(instrument.Summarize(samples, summary.DurationS), probes.sum.Probe())
	if r.hooks.Read != nil {
		probeErr = errors.Join(probeErr, r.hooks.Read(s, samples))
	}
	if r.hooks.End != nil {
		r.hooks.End(s, &summary)
	}
	return errors.Join(err, began, probeErr)
}

// tee is two sinks in one.
type tee struct{ a, b tacho.Sink }

func (t tee) Add(r *tacho.Record) error { return errors.Join(t.a.Add(r), t.b.Add(r)) }
func (t tee) Close() error              { return errors.Join(t.a.Close(), t.b.Close()) }
