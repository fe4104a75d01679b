// Package run executes a plan: it measures the levels of the plan in order.
//
// Open resolves everything the plan leaves open (internal/target) and returns a
// Runner. measure.go prepares and summarizes a level. One of three executors
// runs it (executor.go): local.go, agents.go or virtual.go. levels.go contains the only
// loop over levels. Lists (levels.go, ends.go), sweeps (sweep.go) and searches (find.go)
// choose the levels.
package run

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/predict"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/internal/score"
	"github.com/tacho-bench/tacho/internal/target"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/token"
	"github.com/tacho-bench/tacho/workload"
)

// Env contains the environment of a run.
type Env struct {
	APIKey  string // sent as a bearer token
	KeyFrom string // source of the key, for errors
	// Secrets are removed from all output of the run. The run adds the secrets
	// of its plan. May be nil.
	Secrets *redact.Secrets
	Proxy   func(*http.Request) (*url.URL, error)
	// Dial opens connections to servers and metrics pages; nil uses the
	// network. The kernel does not timestamp such connections: a run with Dial
	// uses read timestamps and Go's timers and does not monitor the process, so
	// it can run in a testing/synctest bubble.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Server creates the server of a level in virtual time, for tests; nil
	// creates the engines of the plan.
	Server func(seed uint64) predict.Server
	Random uint64                             // seed if the plan has none
	Trace  uint64                             // random number in the trace ids of requests; 0 sends none
	Replay func(name string) (*Replay, error) // loads a run for --replay; nil disables it
	// Serve starts the server of a plan and sets its address in the plan; nil if
	// the server is running.
	Serve func(p *plan.Plan, seed uint64) (stop func(), err error)
	// Hold is called before each level and waits while the user pauses the run.
	// It returns the time of the pause. May be nil.
	Hold func(context.Context) (time.Duration, error)

	Tokenizers Tokenizers
	Agents     Agents        // send the load instead of this process; may be nil
	Observer   live.Observer // may be nil
	Watch      bool          // a user watches the run: count and time tokens on arrival
}

// A job contains the immutable inputs of a run.
type job struct {
	Asked plan.Plan // as given, with lists
	Seed  uint64
	env   Env
}

// A setting is the plan of a level with all open questions resolved: protocol
// and addresses of the servers, token ids or text, data of a replay. It is
// immutable; each level has its own setting.
type setting struct {
	*job
	Plan plan.Plan
}

// newJob checks a plan and chooses random values the plan does not set.
func newJob(p plan.Plan, env Env) (*job, error) {
	if env.Observer == nil {
		env.Observer = live.NopObserver{}
	}
	if err := target.Check(&p, nil); err != nil { // bench.Check has reported the detected dataset
		return nil, &UsageError{Err: err}
	}
	timeSweep(&p, env.Observer.Message)
	forTarget := targetEnv(&env)
	forTarget.Learn(&p)
	env.Secrets = forTarget.Secrets
	if p.CheckAnswers && p.Temperature == nil {
		p.Temperature = new(float64) // greedy
	}
	random := fmt.Sprintf("%08x", uint32(env.Random>>16))
	p.RequestIDPrefix = strings.ReplaceAll(p.RequestIDPrefix, plan.RandomPlaceholder, random)
	return &job{Asked: p, Seed: *cmp.Or(p.Seed, &env.Random), env: env}, nil
}

func (j *job) say(format string, a ...any) {
	j.env.Observer.Message(j.env.Secrets.Sweep(fmt.Sprintf(format, a...)))
}

// A Runner measures the levels of a plan.
type Runner struct {
	*setting
	Target *target.Target
	Level  plan.Level      // current level
	Enough <-chan struct{} // closed to stop sending; requests in flight finish; may be nil

	ending     atomic.Pointer[ending] // of the current level
	drawn      int                    // number of the parameter draw of the computed engine; 0 uses the parameters in its file
	paused     time.Duration          // pause before the current level
	opened     outcome.Coordinates    // coordinates for which the servers were opened
	replay     *Replay                // nil without --replay
	parts      int                    // number of parts of the load, of which this process sends one; 0 if it sends everything
	fresh      bool                   // nothing was sent since opening
	continued  bool                   // an earlier coordinator started the level
	stop       func()                 // stops the server started for the run
	live       *live.Feed             // of the current level
	tries      uint64                 // test requests sent
	took       time.Duration          // slowest answer to a test request; 0 if there was none
	baseline   *score.Baseline        // answers to prompts sent alone; nil without --check-answers
	aloneAt    string                 // coordinates of baseline
	idsRefused string                 // the server's message if it rejected token ids
}

// use switches to a target and its plan.
func (r *Runner) use(t *target.Target) { r.Target, r.setting = t, &setting{r.job, t.Plan} }

// Open connects to the servers of the first level and chooses the token
// counter. No tokens are generated yet.
func Open(ctx context.Context, p plan.Plan, env Env) (*Runner, error) {
	j, err := newJob(p, env)
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

// open connects to the servers of a level: it loads the replayed run, starts
// the simulated server of the plan, and opens the target.
func (r *Runner) open(ctx context.Context, l plan.Level) error {
	r.Level, r.opened, r.fresh, r.tries, r.took, r.idsRefused = l, opening(l.Coordinates), true, 0, 0, ""
	r.setting, r.Target = &setting{r.job, l.Plan}, nil
	p := l.Plan
	if err := r.takeReplay(&p); err != nil {
		return err
	}
	if r.env.Serve != nil {
		var err error
		if r.stop, err = r.env.Serve(&p, r.Seed); err != nil {
			return err
		}
	}
	forTarget := targetEnv(&r.env)
	if r.env.Watch {
		forTarget.OnToken = func(n int, first bool, after time.Duration) { r.live.Token(n, first, r.Speed().Stretch(after)) }
	}
	t, err := target.Open(ctx, p, r.Seed, forTarget)
	if err != nil {
		r.Close()
		return err
	}
	r.use(t)
	return nil
}

// targetEnv returns the environment of the target.
func targetEnv(env *Env) target.Env {
	return target.Env{
		APIKey: env.APIKey, KeyFrom: env.KeyFrom, Secrets: env.Secrets, Proxy: env.Proxy, Dial: env.Dial, Tokenizers: env.Tokenizers,
		Observer: env.Observer,
	}
}

// Workload creates the requests of a plan without a server. It also returns the
// counter of prompt tokens: the plan's tokenizer, or an estimate.
func Workload(ctx context.Context, p *plan.Plan, seed uint64, env Env) (workload.Workload, token.Counter, error) {
	return target.Workload(ctx, p, seed, targetEnv(&env))
}

// Counter returns the counter of prompt tokens.
func (r *Runner) Counter() token.Counter { return r.Target.Counter() }

// Close closes the connections.
func (r *Runner) Close() {
	if r.Target != nil {
		r.Target.Close()
	}
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// A UsageError reports a plan that cannot be executed as written.
type UsageError = target.UsageError

// Tokenizers locates the tokenizers of models.
type Tokenizers = target.Tokenizers

// An AnsweredError reports a server whose answers cannot be measured.
type AnsweredError = target.AnsweredError
