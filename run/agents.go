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

	"tacho"
	"tacho/engine"
	"tacho/internal/redact"
	"tacho/internal/target"
	"tacho/live"
	"tacho/metric"
	"tacho/outcome"
	"tacho/pace"
	"tacho/plan"
	"tacho/session"
)

// Agents send the load of a level from elsewhere, each its share of the one
// schedule.
type Agents interface {
	// UnderWay says whether they are at a level already: somebody else has begun it
	// and is gone, and this run goes on with it.
	UnderWay(ctx context.Context, level int) (bool, error)
	// Prepare has all agents make a level ready, and returns when they are.
	Prepare(ctx context.Context, t *Task) error
	// Drive has them start at one instant, and returns when all records are in.
	Drive(ctx context.Context, d *Drive) ([]metric.Agent, []metric.Reason, error)
}

// A Drive is what agents are told while a level runs, and whom they tell.
type Drive struct {
	Enough <-chan struct{} // once closed, they send no more; may be nil
	Begin  func(epoch time.Time)
	Live   *live.Feed // gets what all of them see
	Sink   tacho.Sink // gets the records, fit to be kept
}

// A Task is a level as agents get it: all that was found out is in its plan, so
// that each of them makes the same requests at the same times.
type Task struct {
	Plan        json.RawMessage     `json:"plan"` // with its secrets
	APIKey      string              `json:"api_key,omitempty"`
	Targets     []string            `json:"targets"` // the addresses that requests go to
	Index       int                 `json:"index"`
	Repeat      int                 `json:"repeat,omitempty"`
	Coordinates outcome.Coordinates `json:"coordinates,omitempty"`
	Name        string              `json:"name,omitempty"`
	Draw        uint64              `json:"draw,omitempty"`
	Seed        uint64              `json:"seed"`
	Random      uint64              `json:"random"`
	Users       int                 `json:"users,omitempty"`  // most requests in flight, of all together; 0 is no limit
	Closed      bool                `json:"closed,omitempty"` // requests are due when there is a slot for them
	Watch       bool                `json:"watch,omitempty"`  // somebody looks on
	Sample      uint64              `json:"sample"`           // of its prompts, to tell whether others make the same
}

// task is a level for the agents. What concerns the server is done here, once.
func (r *Runner) task(s *level) (*Task, error) {
	p := r.Plan
	p.Model, p.ServedModelName = r.Target.ModelID, r.Target.Model
	p.NoTrial, p.ReadyCheck, p.NumWarmups, p.FlushCache, p.Profile, p.ProfileAt, p.ProbeRate = true, 0, 0, false, false, 0, 0
	p.MetricsURL, p.GPUMetricsURL, p.APIKey, p.APIKeyFile = []string{"none"}, nil, "", ""
	p.Machines, p.GPUPrice, p.FailIf = plan.Default().Machines, 0, ""
	text, err := p.MarshalJSON()
	if err != nil {
		return nil, err
	}
	_, closed := s.pacer.(pace.Closed)
	return &Task{
		Plan: text, APIKey: r.env.APIKey, Targets: p.BaseURLs(), Index: s.Index, Repeat: s.Repeat, Coordinates: s.Coordinates, Name: s.Name,
		Draw: s.Draw, Seed: r.Seed, Random: r.env.Random, Users: s.Concurrency, Closed: closed, Watch: r.hooks.Watch, Sample: sampleOf(s.plain),
	}, nil
}

// agents is the executor that has other machines send the load. This one asks the
// servers all else.
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
		all, known, err := x.env.Agents.Drive(ctx, &Drive{Enough: x.Enough, Begin: begin, Live: e.feed, Sink: merged{e.sink, e.sum, s, e.feed}})
		s.config.Agents, s.config.Client = all, metric.WorstClient(all)
		return known, err
	})
}

// merged takes the records of agents, which are fit to be kept.
type merged struct {
	tacho.Sink
	sum   *metric.Accumulator
	level *level
	feed  *live.Feed
}

// Add implements tacho.Sink.
func (m merged) Add(rec *tacho.Record) error {
	if rec.Turn == 0 {
		_, _ = m.level.work.Session(rec.Session) // it is watched for what prompts share; whoever sent it would have failed
	}
	m.feed.Add(rec)
	return errors.Join(m.sum.Add(rec), m.Sink.Add(rec))
}

// A Share is which part of a level an agent sends, and when.
type Share struct {
	K, N  int                       // part K of N
	Skip  func(session uint64) bool // of the part, what is done or has begun already; may be nil
	Begun []session.Begun           // sessions of it that somebody else has begun
	Now   time.Duration             // since the start, when that one was given up
	Start engine.Start
	Begin func(epoch time.Time, fares func() *metric.Client) // told when the clock starts; may be nil
	Live  *live.Feed
}

// OpenTask opens the servers of a task.
func OpenTask(ctx context.Context, t *Task, env Env, hooks Hooks) (*Runner, error) {
	env.APIKey, env.Random = t.APIKey, t.Random
	if env.Secrets == nil {
		env.Secrets = &redact.Secrets{}
	}
	l, err := t.level(env.Secrets)
	if err != nil {
		return nil, err
	}
	hooks.Watch = t.Watch
	r, err := Open(ctx, l.Plan, env, hooks)
	if err != nil {
		return nil, err
	}
	r.opened = opening(t.Coordinates)
	return r, nil
}

// Fits says whether a runner that was opened for a task can do another.
func (t *Task) Fits(other *Task) bool {
	return t.APIKey == other.APIKey && t.Seed == other.Seed && t.Random == other.Random &&
		slices.Equal(t.Targets, other.Targets) && slices.Equal(opening(t.Coordinates), opening(other.Coordinates))
}

// level is the level that a task is of.
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

// Share runs a part of a level, and says how this machine fared.
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
		return nil, nil, fmt.Errorf("the prompts made here are not those of the coordinator: see that the data and the tokenizer are the same on both machines (prompts are counted by %s here)", r.Counter().Name())
	}
	r.live = part.Live
	stage := local{r}.stage(s, &part.Live.Counts)
	stage.Arrivals, stage.Start = part.of(stage.Arrivals, l.Concurrency), part.Start
	rests, err := part.takeUp(&stage, r.Speed(), t.Closed)
	if err != nil {
		return nil, nil, err
	}
	begin := part.Begin
	if begin == nil {
		begin = func(time.Time, func() *metric.Client) {}
	}
	client, known, err := local{r}.send(ctx, stage, begin, finisher{wholeSessions{sink, rests}, r, nil})
	for _, n := range s.work.Notes() {
		known = append(known, metric.Reason{Code: "workload", Severity: metric.Note, Text: n})
	}
	target.ScrubReasons(r.env.Secrets, known)
	return client, known, err
}

// level is what a level has of connections and users for this part. The whole
// number of prompts is kept: they are made as for one machine.
func (part Share) level(l plan.Level) plan.Level {
	l.Concurrency = part.users(l.Concurrency)
	return l
}

// Shares is how many of n agents have anything to do: no more than there are
// users.
func (t *Task) Shares(n int) int {
	if t.Users > 0 {
		return min(n, t.Users)
	}
	return n
}

// users is this part of a number of users.
func (part Share) users(all int) int {
	if all == 0 {
		return 0
	}
	return (all - part.K + part.N - 1) / part.N
}

// of keeps the arrivals of this part: every N-th, or of a limited load those of
// its users, where user u has every session that is u modulo their number.
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

// mostSampled bounds the sessions that stand for all others.
const mostSampled = 4

// sampleOf tells workloads apart by their first sessions.
func sampleOf(source tacho.Source) uint64 {
	h := fnv.New64a()
	for i := range uint64(mostSampled) {
		s, err := source.Session(i)
		if err != nil {
			break // there are no more, or the run will say what is wrong
		}
		for k := range s.Turns {
			t := &s.Turns[k]
			text, _ := json.Marshal(t.Request.Input) // data, which can be written
			_, _ = fmt.Fprintf(h, "%d %v %d %d %d %s\n", i, t.Think, t.At, t.Request.InputTokens, t.Request.MaxTokens, text)
		}
	}
	return h.Sum64()
}
