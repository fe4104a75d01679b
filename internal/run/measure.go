package run

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/instrument"
	"github.com/tacho-bench/tacho/internal/score"
	"github.com/tacho-bench/tacho/internal/target"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/pace"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

func (r *Runner) seedOf(l plan.Level) uint64 { return LevelSeed(r.Seed, l.Index) }

// A level is a level of the plan, ready to run.
type level struct {
	plan.Level
	outcome outcome.Level
	config  metric.Config
	pacer   tacho.Pacer
	work    workload.Workload
	plain   workload.Workload // work without the sharing statistics
	sharing *workload.Sharing // prefixes shared by its prompts
	reasons func(*metric.Summary) []metric.Reason
}

// Measure runs one level and returns its outcome, or nil if the level did not
// start. Finished records go to sink. If ctx is canceled, Measure returns ctx's
// error and the outcome of the finished part.
func (r *Runner) Measure(ctx context.Context, l plan.Level, sink tacho.Sink) (*outcome.Level, error) {
	return r.measure(ctx, &levelRun{Level: l, sink: sink})
}

// measure runs a level.
func (r *Runner) measure(ctx context.Context, st *levelRun) (*outcome.Level, error) {
	l := st.Level
	if err := r.hold(ctx); err != nil {
		return nil, err
	}
	if err := r.enter(ctx, l); err != nil {
		return nil, err
	}
	var err error
	if r.continued, err = r.executor().underWay(ctx, l); err != nil {
		return nil, err
	}
	s, err := r.prepare(ctx, l)
	if err != nil {
		return nil, err
	}
	s.reasons = st.reasons
	if err := r.executor().prepare(ctx, s); err != nil {
		return nil, err
	}
	if r.Asked.CheckAnswers {
		if err := r.alone(ctx, s); err != nil {
			return nil, err
		}
	}
	stop, err := r.Target.Profile(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := r.env.Observer.LevelPrepared(); err != nil {
		return nil, err
	}
	if err = r.execute(ctx, s, st.sink); err != nil && s.outcome.Epoch.IsZero() {
		return nil, err // not started
	}
	return &s.outcome, err
}

// prepare prepares everything for a level: workload, servers and connections.
func (r *Runner) prepare(ctx context.Context, l plan.Level) (*level, error) {
	s := &level{Level: l, sharing: &workload.Sharing{}}
	if r.fresh && r.Plan.ReadyCheck == 0 {
		if err := r.Target.Warm(ctx, r.Target.Count(), 0); err != nil {
			return nil, r.Target.Unreachable(ctx, err)
		}
	}
	if err := r.settle(ctx, s); err != nil {
		return nil, err
	}
	s.plain, s.work = s.work, s.sharing.Watch(s.work)
	switch err := r.executor().ready(ctx, s); {
	case errors.Is(err, errAsText):
		return r.prepare(ctx, l)
	case err != nil:
		return nil, err
	}
	return s, nil
}

// settle fixes the workload, checks the prompt lengths and clears the server's
// cache.
func (r *Runner) settle(ctx context.Context, s *level) error {
	if err := r.load(ctx, s); err != nil {
		return err
	}
	if r.Target.Counter().Exact() {
		if err := r.Target.Fits(s.Level, s.work); err != nil {
			return err
		}
	}
	if r.continued {
		return nil
	}
	return r.Target.Flush(ctx)
}

// load fixes requests, arrivals and the configuration of the summary.
func (r *Runner) load(ctx context.Context, s *level) (err error) {
	if err := r.sending(ctx, s); err != nil {
		return err
	}
	l := s.Level
	if s.config, err = r.Plan.Config(l); err != nil {
		return &UsageError{Err: err}
	}
	s.config.InputEstimated, s.config.Pools = !r.Target.Counter().Exact(), r.Target.Kind.Pools
	s.config.GPUs, s.config.Simulated = float64(r.Target.GPUs.Count()), r.Target.Simulated
	s.config.Engine = metric.EngineOf(r.Target.Servers, func(s target.Server) string { return s.Name })
	if r.Target.Kind.Pools && r.Plan.PercentileMetrics == "" {
		s.config.Metrics = []string{metric.E2EL.Name} // the only latency
	}
	s.config.Known = slices.Concat(s.config.Known, r.Target.Cannot(), r.refusal(), r.pinned())
	s.outcome.Setting = outcome.Setting{
		Index: l.Index, Coordinates: l.Coordinates, Repeat: l.Repeat, Name: l.Name, Value: l.Value, Prompts: l.Inputs, Rate: l.Rate, Concurrency: l.Concurrency, Ramp: r.ramp(s.pacer),
	}
	if math.IsInf(l.Rate, 1) {
		s.outcome.Rate = 0
	}
	return nil
}

// sending fixes requests and arrivals.
func (r *Runner) sending(ctx context.Context, s *level) (err error) {
	if r.replay != nil {
		r.schedule(s)
		s.work, err = r.again(ctx, s.Level)
		return err
	}
	if s.work, err = r.Target.Workload(ctx, s.Level, r.workSeed(s.Level), false); err != nil {
		return err
	}
	if s.pacer, err = r.arrivals(s.Level, s.work); err != nil {
		return &UsageError{Err: err}
	}
	return nil
}

// ramp returns the ramp of the request rate, or nil.
func (r *Runner) ramp(p tacho.Pacer) *outcome.Ramp {
	ramp, ok := p.(pace.Ramp)
	if !ok {
		return nil
	}
	out := &outcome.Ramp{Strategy: r.Plan.RampUpStrategy, StartRPS: int(*r.Plan.RampUpStartRPS), EndRPS: int(*r.Plan.RampUpEndRPS)}
	last := out.StartRPS
	out.Changes = []outcome.RateChange{{RPS: last}}
	i := 0
	for at := range ramp.Arrivals() {
		for last < int(ramp.RateBefore(i)) {
			last++
			out.Changes = append(out.Changes, outcome.RateChange{RPS: last, At: at})
		}
		i++
	}
	return out
}

// connections returns the number of connections to open before a level.
func (r *Runner) connections(l plan.Level) int {
	const most = 16_000 // below the usual limits of descriptors and ports
	n := l.Prompts
	if l.Concurrency > 0 {
		n = l.Concurrency
	} else if rate := min(r.rate(l), most) * float64(r.Speed()); r.rate(l) < most {
		if at := int(rate * r.foresight()); n == 0 || at < n {
			n = max(at, 8)
		}
	}
	if r.parts > 1 && l.Concurrency == 0 {
		n = (n + r.parts - 1) / r.parts
	}
	return min(max(n, 1), most)
}

// foresight returns how many seconds of an open loop are covered by connections
// opened in advance: eight times the duration of the test answer, because
// others may be longer, but at most one second. More connections are opened on
// use.
func (r *Runner) foresight() float64 {
	const answers, most = 8, 1.0
	if r.took == 0 {
		return most
	}
	return min(most, answers*r.took.Seconds())
}

// spares returns the number of idle connections kept beyond those in use. An
// open loop needs them when the server slows down; other loads need none.
func (r *Runner) spares(l plan.Level) int {
	if math.IsInf(r.rate(l), 1) {
		return 0
	}
	return min(r.connections(l), 256)
}

// sumUp creates the outcome of a finished level.
func (r *Runner) sumUp(s *level, e *execution) {
	out, sum := &s.outcome, e.sum
	for _, n := range s.work.Notes() {
		s.config.Known = append(s.config.Known, metric.Reason{Code: "workload", Severity: metric.Note, Text: n})
	}
	r.early(s)
	s.config.Answers, s.config.Known = r.judge(e.book), append(s.config.Known, r.answersKnown()...)
	s.config.SharedShare, s.config.Unsent = s.sharing.Share(), r.unsent(s, sum.Begun())
	if r.baseline != nil { // every prompt was sent before
		s.config.SharedShare = new(1.0)
	}
	target.ScrubSamples(r.env.Secrets, out.Samples)
	target.ScrubReasons(r.env.Secrets, s.config.Known)
	out.Summary = sum.Measured(s.config)
	if s.reasons != nil {
		out.Summary.Config.Known = append(out.Summary.Config.Known, s.reasons(&out.Summary)...)
	}
	out.Summary.Conclude(instrument.Summarize(out.Samples, out.Summary.DurationS), e.probe)
}

// A finisher is a Sink that completes records and forwards them.
type finisher struct {
	tacho.Sink
	r   *Runner
	sum *metric.Accumulator // nil if another process summarizes

	book *score.Book // keeps the answers; may be nil
}

// Add implements tacho.Sink.
func (f finisher) Add(rec *tacho.Record) error { return f.AddAll([]*tacho.Record{rec}) }

// AddAll implements engine.Batcher.
func (f finisher) AddAll(recs []*tacho.Record) error {
	fit := recs[:0]
	var first error
	for _, rec := range recs {
		rec, err := f.finish(rec)
		if err == nil {
			fit = append(fit, rec)
		} else if first == nil {
			first = err
		}
	}
	return cmp.Or(first, engine.AddAll(f.Sink, fit))
}

// finish completes and counts a record.
func (f finisher) finish(rec *tacho.Record) (*tacho.Record, error) {
	if err := f.r.Target.Recount(rec); err != nil {
		return nil, err
	}
	target.Scrub(f.r.env.Secrets, rec)
	f.book.Add(rec)
	if !f.r.Plan.SaveDetailed {
		rec.Text, rec.Calls = "", nil // no longer needed for counting or the next turn
	}
	rec = f.r.Speed().record(rec)
	f.r.live.Add(rec)
	if f.sum != nil {
		_ = f.sum.Add(rec) // in memory, cannot fail
	}
	return rec, nil
}
