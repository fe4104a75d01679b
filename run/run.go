// Package run carries out a plan: it finds the server, makes the workload
// ready, and runs the levels one after the other.
//
// Open makes four things of a plan, in this order. A Target is the servers
// (target.go, model.go, pages.go, about.go); counting says who counts tokens
// (tokenizer.go, counting.go); a feed makes what is sent (workload.go, hub.go,
// template.go); a Runner measures the levels with them (measure.go).
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

	"tacho/backend"
	"tacho/internal/redact"
	"tacho/live"
	"tacho/metric"
	"tacho/outcome"
	"tacho/plan"
	"tacho/predict"
	"tacho/token"
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
	if err := Check(&p, hooks.Say); err != nil {
		return nil, &UsageError{err}
	}
	timeSweep(&p, hooks.Say)
	env.learn(&p)
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
	Target *Target
	Level  plan.Level      // the one that runs
	Enough <-chan struct{} // once closed, the level sends no more; what is in flight may finish; nil is never

	counting   *counting
	feed       *feed
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

func newRunner(t *Target) *Runner {
	r := &Runner{live: &live.Feed{}}
	r.aim(t)
	return r
}

// aim makes the runner ready for a target.
func (r *Runner) aim(t *Target) {
	r.setting, r.Target, r.counting = t.setting, t, &counting{setting: t.setting, target: t}
	r.feed = &feed{setting: t.setting, target: t, counting: r.counting}
}

// use takes up the plan of a level on the same target.
func (r *Runner) use(p plan.Plan) {
	now := &setting{r.job, p}
	r.setting, r.Target.setting, r.counting.setting, r.feed.setting = now, now, now, now
}

// Open gets in touch with the servers of the first level, and settles who counts
// tokens. Nothing is generated yet.
func Open(ctx context.Context, p plan.Plan, env Env, hooks Hooks) (*Runner, error) {
	j, err := newJob(p, env, hooks)
	if err != nil {
		return nil, err
	}
	levels := j.order()
	r := newRunner(&Target{setting: &setting{j, levels[0].Plan}})
	if err := r.open(ctx, levels[0]); err != nil {
		return nil, err
	}
	return r, nil
}

// open gets in touch with the servers of a level.
func (r *Runner) open(ctx context.Context, l plan.Level) error {
	r.Level, r.opened, r.fresh, r.tries, r.took, r.idsRefused = l, opening(l.Coordinates), true, 0, 0, ""
	r.aim(&Target{setting: &setting{r.job, l.Plan}})
	found, err := r.resolve(ctx, l.Plan)
	if err != nil {
		r.Close()
		return err
	}
	r.use(found)
	for _, step := range []func(context.Context) error{
		r.Target.connect,
		r.Target.findModel,
		r.counting.findTokenizer,
		r.openServers,
		r.Target.inspect,
		r.counting.findCounter,
	} {
		if err := step(ctx); err != nil {
			r.Close()
			return err
		}
	}
	return nil
}

// resolve fills in what a plan leaves open: it reads what is to be sent again, starts
// the server that the plan brings along, and finds out which protocol to speak.
func (r *Runner) resolve(ctx context.Context, p plan.Plan) (plan.Plan, error) {
	takeVersion(&p)
	if err := r.takeReplay(&p); err != nil {
		return p, err
	}
	if r.hooks.Serve != nil {
		var err error
		if r.stop, err = r.hooks.Serve(&p, r.Seed); err != nil {
			return p, err
		}
	}
	r.aim(&Target{setting: &setting{r.job, p}})
	var err error
	p.Backend, p.Port, err = r.Target.findProtocol(ctx)
	return p, err
}

// openServers makes the servers ready for requests. Where there is a tokenizer,
// it counts what they generate, so that the text must be kept.
func (r *Runner) openServers(context.Context) error {
	var onToken backend.OnToken
	if r.hooks.Watch {
		onToken = func(n int, first bool, after time.Duration) { r.live.Token(n, first, r.Speed().Stretch(after)) }
	}
	return r.Target.open(r.counting.tokenizer != nil, onToken)
}

// Counter is who counts prompt tokens.
func (r *Runner) Counter() token.Counter { return r.counting.counter }

// Close lets go of the connections.
func (r *Runner) Close() {
	for _, c := range r.Target.clients {
		c.Close()
	}
	if pages := r.Target.pages; pages != nil && pages.client != nil {
		pages.client.CloseIdleConnections()
	}
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// A UsageError is a plan that cannot be carried out as it is written.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *UsageError) Unwrap() error { return e.Err }
