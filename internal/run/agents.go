package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/internal/target"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/pace"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/session"
)

// Agents send the load of a level from other processes. Each agent sends its
// share of one common schedule.
type Agents interface {
	// UnderWay reports whether the agents already run a level that an earlier
	// coordinator started. The run then continues the level.
	UnderWay(ctx context.Context, level int) (bool, error)
	// Prepare prepares a level on all agents and returns when they are ready.
	Prepare(ctx context.Context, t *Task) error
	// Drive starts all agents at the same time and returns when all records
	// have arrived.
	Drive(ctx context.Context, d *Drive) ([]metric.Agent, []metric.Reason, error)
}

// A Drive connects the agents with a running level.
type Drive struct {
	Enough <-chan struct{} // closed to stop sending; may be nil
	Begin  func(epoch time.Time)
	Live   *live.Feed // receives live state of all agents
	Sink   tacho.Sink // receives complete records
}

// A Task is a level for agents. Its plan has no open questions, so that all
// agents create the same requests at the same times.
type Task struct {
	Plan        json.RawMessage     `json:"plan"` // includes secrets
	APIKey      string              `json:"api_key,omitempty"`
	Targets     []string            `json:"targets"` // addresses of the servers
	Index       int                 `json:"index"`
	Repeat      int                 `json:"repeat,omitempty"`
	Coordinates outcome.Coordinates `json:"coordinates,omitempty"`
	Name        string              `json:"name,omitempty"`
	Draw        uint64              `json:"draw,omitempty"`
	Seed        uint64              `json:"seed"`
	Random      uint64              `json:"random"`
	Trace       uint64              `json:"trace,omitempty"`
	Users       int                 `json:"users,omitempty"`  // maximum requests in flight over all agents; 0 means unlimited
	Closed      bool                `json:"closed,omitempty"` // requests are due when a slot is free
	Watch       bool                `json:"watch,omitempty"`  // a user watches the run
	Sample      uint64              `json:"sample"`           // hash of the first prompts, to detect agents with different data
}

// task creates the task of a level. The coordinator prepares the servers once.
func (r *Runner) task(s *level) (*Task, error) {
	p := r.Plan
	p.Model, p.ServedModelName = r.Target.ModelID, r.Target.Model
	p.NoTrial, p.ReadyCheck, p.NumWarmups, p.FlushCache, p.Profile, p.ProfileAt, p.ProbeRate = true, 0, 0, false, false, 0, 0
	p.MetricsURL, p.GPUMetricsURL, p.APIKey, p.APIKeyFile = []string{"none"}, nil, "", ""
	p.Machines, p.GPUPrice, p.FailIf = plan.Default().Machines, 0, ""
	p.MetricsListen, p.OTLP, p.OTLPHeaders = "", "", nil // the coordinator publishes, and the headers are secret
	text, err := p.MarshalJSON()
	if err != nil {
		return nil, err
	}
	_, closed := s.pacer.(pace.Closed)
	return &Task{
		Plan: text, APIKey: r.env.APIKey, Targets: p.BaseURLs(), Index: s.Index, Repeat: s.Repeat, Coordinates: s.Coordinates, Name: s.Name,
		Draw: s.Draw, Seed: r.Seed, Random: r.env.Random, Trace: r.env.Trace, Users: s.Concurrency, Closed: closed, Watch: r.env.Watch, Sample: sampleOf(s.plain),
	}, nil
}

// agents is the executor that sends the load from other machines. The
// coordinator does everything else.
type agents struct{ local }

func (x agents) underWay(ctx context.Context, l plan.Level) (bool, error) {
	return x.env.Agents.UnderWay(ctx, l.Index)
}

func (x agents) prepare(ctx context.Context, s *level) error {
	t, err := x.task(s)
	if err != nil {
		return err
	}
	return x.env.Agents.Prepare(ctx, t)
}

func (x agents) run(ctx context.Context, s *level, e *execution) error {
	return x.observe(ctx, s, e, func(ctx context.Context, begin func(time.Time)) ([]metric.Reason, error) {
		all, known, err := x.env.Agents.Drive(ctx, &Drive{Enough: x.enough(), Begin: begin, Live: e.feed, Sink: merged{e.sink, e.sum, s, e.feed}})
		s.config.Agents, s.config.Client = all, metric.WorstClient(all)
		return known, err
	})
}

// merged receives the complete records of agents.
type merged struct {
	tacho.Sink
	sum   *metric.Accumulator
	level *level
	feed  *live.Feed
}

// Add implements tacho.Sink.
func (m merged) Add(rec *tacho.Record) error {
	if rec.Turn == 0 {
		_, _ = m.level.work.Session(rec.Session) // records which prefixes prompts share; the agent reports any error
	}
	m.feed.Add(rec)
	return errors.Join(m.sum.Add(rec), m.Sink.Add(rec))
}

// A Share is the part of a level that one agent sends.
type Share struct {
	K, N  int                       // part K of N
	Skip  func(session uint64) bool // reports sessions finished or started already; may be nil
	Begun []session.Partial         // sessions started by a lost agent
	Now   time.Duration             // time since the start at which the lost agent was given up
	Start engine.Start
	Hold  func(context.Context) error                         // waits while the agent may send nothing; may be nil
	Begin func(epoch time.Time, health func() *metric.Client) // called when the clock starts; may be nil
	Live  *live.Feed
}

// OpenTask connects to the servers of a task.
func OpenTask(ctx context.Context, t *Task, env Env) (*Runner, error) {
	env.APIKey, env.Random, env.Trace = t.APIKey, t.Random, t.Trace
	if env.Secrets == nil {
		env.Secrets = &redact.Secrets{}
	}
	l, err := t.level(env.Secrets)
	if err != nil {
		return nil, err
	}
	env.Watch = t.Watch
	r, err := Open(ctx, l.Plan, env)
	if err != nil {
		return nil, err
	}
	r.opened = opening(t.Coordinates)
	return r, nil
}

// Fits reports whether a runner opened for one task can run another.
func (t *Task) Fits(other *Task) bool {
	return t.APIKey == other.APIKey && t.Seed == other.Seed && t.Random == other.Random && t.Trace == other.Trace &&
		slices.Equal(t.Targets, other.Targets) && slices.Equal(opening(t.Coordinates), opening(other.Coordinates))
}

// level returns the level of the task.
func (t *Task) level(secrets *redact.Secrets) (plan.Level, error) {
	p := plan.Default()
	if err := p.Read(t.Plan, secrets); err != nil {
		return plan.Level{}, err
	}
	p.Seed = &t.Seed
	l, err := p.At(t.Index, nil)
	l.Repeat, l.Coordinates, l.Name, l.Draw = t.Repeat, t.Coordinates, t.Name, t.Draw
	return l, err
}

// Share runs a part of a level and returns the health of this client.
func (r *Runner) Share(ctx context.Context, t *Task, part Share, sink tacho.Sink) (*metric.Client, []metric.Reason, error) {
	l, err := t.level(r.env.Secrets)
	if err != nil {
		return nil, nil, err
	}
	if err := r.enter(ctx, l); err != nil {
		return nil, nil, err
	}
	r.parts = part.N
	s, err := r.prepare(ctx, part.level(l))
	if err != nil {
		return nil, nil, err
	}
	if sampleOf(s.plain) != t.Sample {
		return nil, nil, fmt.Errorf("prompts differ from the coordinator's, use the same data and tokenizer on both machines (%s counts prompts here)", r.Counter().Name())
	}
	r.live = part.Live
	stage := local{r}.stage(s, &part.Live.Counts)
	stage.Arrivals, stage.Start, stage.Hold = part.of(stage.Arrivals, l.Concurrency), part.Start, part.Hold
	rests, err := part.takeUp(&stage, r.Speed(), t.Closed)
	if err != nil {
		return nil, nil, err
	}
	begin := part.Begin
	if begin == nil {
		begin = func(time.Time, func() *metric.Client) {}
	}
	client, known, err := local{r}.send(ctx, stage, begin, finisher{wholeSessions{sink, rests}, r, nil, nil})
	for _, n := range s.work.Notes() {
		known = append(known, metric.Reason{Code: "workload", Severity: metric.Note, Text: n})
	}
	target.ScrubReasons(r.env.Secrets, known)
	return client, known, err
}

// level limits the concurrency to this part. The number of prompts stays the
// same, because all agents create the same prompts.
func (part Share) level(l plan.Level) plan.Level {
	l.Concurrency = part.users(l.Concurrency)
	return l
}

// Shares returns the number of agents with a share, out of n: at most the
// number of users.
func (t *Task) Shares(n int) int {
	if t.Users > 0 {
		return min(n, t.Users)
	}
	return n
}

// users returns this part of a number of users.
func (part Share) users(all int) int {
	if all == 0 {
		return 0
	}
	return (all - part.K + part.N - 1) / part.N
}

// of filters the arrivals of this part: every N-th arrival, or, for a limited
// load, the arrivals of its users. User u has the sessions whose number modulo
// the number of users is u.
func (part Share) of(all iter.Seq2[uint64, time.Duration], users int) iter.Seq2[uint64, time.Duration] {
	return func(yield func(uint64, time.Duration) bool) {
		at := 0
		for i, due := range all {
			user := at
			if users > 0 {
				user %= users
			}
			at++
			if user%part.N != part.K || part.Skip != nil && part.Skip(i) {
				continue
			}
			if !yield(i, due) {
				return
			}
		}
	}
}

// mostSampled is the number of sessions in the hash.
const mostSampled = 4

// sampleOf hashes the first sessions of a workload.
func sampleOf(source tacho.Source) uint64 {
	h := fnv.New64a()
	for i := range uint64(mostSampled) {
		s, err := source.Session(i)
		if err != nil {
			break // end of the data, or an error that the run reports
		}
		for k := range s.Turns {
			t := &s.Turns[k]
			text, _ := json.Marshal(t.Request.Input) // cannot fail
			_, _ = fmt.Fprintf(h, "%d %v %d %d %d %s\n", i, t.Think, t.At, t.Request.InputTokens, t.Request.MaxTokens, text)
		}
	}
	return h.Sum64()
}
