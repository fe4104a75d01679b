// Package run carries out a plan: it measures its levels one after the other.
//
// Open resolves what the plan leaves open (internal/target) and returns a Runner. A
// level is prepared and summed up in measure.go, and carried out by one of three
// executors (executor.go): local.go, agents.go, virtual.go. Lists of levels and sweeps
// are loops over that (levels.go, sweep.go, ends.go).
package run

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tacho/internal/redact"
	"tacho/internal/target"
	"tacho/live"
	"tacho/metric"
	"tacho/outcome"
	"tacho/plan"
	"tacho/predict"
	"tacho/token"
	"tacho/workload"
)

// Env is what a run needs of the world around it.
type Env struct {
	APIKey  string // sent as a bearer token
	KeyFrom string // where it comes from, for errors
	// Secrets are hidden in all that the run keeps or says. Those of the plan are
	// added. Nil is none yet.
	Secrets *redact.Secrets
	Proxy   func(*http.Request) (*url.URL, error)
	// Dial makes the connections to the servers and to their metrics pages; nil
	// uses the network. The kernel does not time what such connections receive: a
	// run with Dial stamps arrivals when it reads them, waits on Go's timers and
	// does not watch the process. So it can run in a testing/synctest bubble.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Server makes the server of a level in virtual time, for tests; nil makes the
	// engines of the plan.
	Server func(seed uint64) predict.Server
	Random uint64                             // the seed where the plan has none
	Replay func(name string) (*Replay, error) // reads what is to be sent again; nil where that cannot be

	Tokenizers Tokenizers
	Agents     Agents // send the load instead of this process; nil where it does
}

// Hooks are told how a run goes. All may be nil.
type Hooks struct {
	Say   func(line string)                  // something worth knowing
	Ready func(done, all int)                // prompts made ready
	Fetch func(file string, done, all int64) // bytes of a file downloaded; all is -1 while nobody knows
	// Serve starts the server that a plan brings along, and puts its address into
	// the plan.
	Serve func(p *plan.Plan, seed uint64) (stop func(), err error)
	Open  func() error                           // a level is about to begin, and all is well so far
	Begin func(*outcome.Level, *live.Feed) error // it has begun
	Watch bool                                   // somebody looks at it: tokens are counted and timed as they arrive
}

// A job is what a run is carried out with. It does not change.
type job struct {
	Asked plan.Plan // as it was given, with its lists
	Seed  uint64
	env   Env
	hooks Hooks
}

// A setting is the plan of a level in which all that it left open is filled in: the
// protocol and the addresses of the servers, token ids or text, the data of a
// replay. It does not change: another level has a setting of its own.
type setting struct {
	*job
	Plan plan.Plan
}

// newJob checks a plan, and draws what it leaves to chance.
func newJob(p plan.Plan, env Env, hooks Hooks) (*job, error) {
	if err := target.Check(&p, nil); err != nil { // bench.Check has told what it takes the data for
		return nil, &UsageError{Err: err}
	}
	timeSweep(&p, hooks.Say)
	around := targetEnv(&env, &hooks)
	around.Learn(&p)
	env.Secrets = around.Secrets
	random := fmt.Sprintf("%08x", uint32(env.Random>>16))
	p.RequestIDPrefix = strings.ReplaceAll(p.RequestIDPrefix, plan.RandomHole, random)
	return &job{Asked: p, Seed: *cmp.Or(p.Seed, &env.Random), env: env, hooks: hooks}, nil
}

func (j *job) say(format string, a ...any) {
	if j.hooks.Say != nil {
		j.hooks.Say(j.env.Secrets.Sweep(fmt.Sprintf(format, a...)))
	}
}

// A Runner measures the levels of a plan.
type Runner struct {
	Drawn int // which draw of the parameters of computed engines to take; 0 is those of their files

	*setting
	Target *target.Target
	Level  plan.Level      // the one that runs
	Enough <-chan struct{} // once closed, the level sends no more; what is in flight may finish; nil is never

	opened     outcome.Coordinates                   // for which the servers were opened
	replay     *Replay                               // what is sent again; nil is nothing
	parts      int                                   // in which the load is sent, this being one of them; 0 is all of it
	fresh      bool                                  // nothing was sent since
	continued  bool                                  // the level was begun by a coordinator that is gone
	judge      func(*metric.Summary) []metric.Reason // what is known of a level once it is summed up; may be nil
	stop       func()                                // the server that was started for the run
	live       *live.Feed                            // of the level that runs
	tries      uint64                                // requests sent before the measured ones, to see whether the servers answer
	took       time.Duration                         // the slowest answer to these; 0 where there was none
	idsRefused string                                // the server's words for it, where it takes no token ids
}

// use takes up a target, and the plan of the level that it is for.
func (r *Runner) use(t *target.Target) { r.Target, r.setting = t, &setting{r.job, t.Plan} }

// Open gets in touch with the servers of the first level, and settles who counts
// tokens. Nothing is generated yet.
func Open(ctx context.Context, p plan.Plan, env Env, hooks Hooks) (*Runner, error) {
	j, err := newJob(p, env, hooks)
	if err != nil {
		return nil, err
	}
	levels := j.order()
	r := &Runner{setting: &setting{j, levels[0].Plan}, live: &live.Feed{}}
	if err := r.open(ctx, levels[0]); err != nil {
		return nil, err
	}
	return r, nil
}

// open gets in touch with the servers of a level: it reads what is to be sent again,
// starts the server that the plan brings along, and opens the target.
func (r *Runner) open(ctx context.Context, l plan.Level) error {
	r.Level, r.opened, r.fresh, r.tries, r.took, r.idsRefused = l, opening(l.Coordinates), true, 0, 0, ""
	r.setting, r.Target = &setting{r.job, l.Plan}, nil
	p := l.Plan
	if err := r.takeReplay(&p); err != nil {
		return err
	}
	if r.hooks.Serve != nil {
		var err error
		if r.stop, err = r.hooks.Serve(&p, r.Seed); err != nil {
			return err
		}
	}
	around := targetEnv(&r.env, &r.hooks)
	if r.hooks.Watch {
		around.OnToken = func(n int, first bool, after time.Duration) { r.live.Token(n, first, r.Speed().Stretch(after)) }
	}
	t, err := target.Open(ctx, p, r.Seed, around)
	if err != nil {
		r.Close()
		return err
	}
	r.use(t)
	return nil
}

// targetEnv is what a target needs of the world.
func targetEnv(env *Env, hooks *Hooks) target.Env {
	return target.Env{
		APIKey: env.APIKey, KeyFrom: env.KeyFrom, Secrets: env.Secrets, Proxy: env.Proxy, Dial: env.Dial, Tokenizers: env.Tokenizers,
		Say: hooks.Say, Ready: hooks.Ready, Fetch: hooks.Fetch,
	}
}

// Workload is what the plan would send, made without a server, and who counted
// its prompts: the tokenizer that the plan names, or an estimate.
func Workload(ctx context.Context, p *plan.Plan, seed uint64, env Env, hooks Hooks) (workload.Workload, token.Counter, error) {
	return target.Workload(ctx, p, seed, targetEnv(&env, &hooks))
}

// Counter is who counts prompt tokens.
func (r *Runner) Counter() token.Counter { return r.Target.Counter() }

// Close lets go of the connections.
func (r *Runner) Close() {
	if r.Target != nil {
		r.Target.Close()
	}
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// A UsageError is a plan that cannot be carried out as it is written.
type UsageError = target.UsageError

// Tokenizers are where the tokenizers of models are found.
type Tokenizers = target.Tokenizers

// An AnsweredError is a server that answered, but not as one that can be measured.
type AnsweredError = target.AnsweredError
