package run_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
)

// nearAgents are agents in this process.
type nearAgents struct {
	env  run.Env
	n    int
	task *run.Task
}

func (a *nearAgents) UnderWay(context.Context, int) (bool, error) { return false, nil }

func (a *nearAgents) Prepare(_ context.Context, t *run.Task) error {
	a.task = t
	return nil
}

func (a *nearAgents) Drive(ctx context.Context, d *run.Drive) ([]metric.Agent, []metric.Reason, error) {
	var runners []*run.Runner
	for range a.n {
		r, err := run.OpenTask(ctx, a.task, a.env)
		if err != nil {
			return nil, nil, err
		}
		defer r.Close()
		runners = append(runners, r)
	}
	d.Begin(time.Now())
	sink := &shared{Sink: d.Sink}
	out := make([]metric.Agent, a.n)
	failed := make([]error, a.n)
	var group sync.WaitGroup
	for k, r := range runners {
		group.Go(func() {
			var client *metric.Client
			client, _, failed[k] = r.Share(ctx, a.task, run.Share{K: k, N: a.n, Live: &live.Feed{}}, sink)
			out[k] = metric.Agent{Name: fmt.Sprint(k), Client: client}
		})
	}
	group.Wait()
	return out, nil, errors.Join(failed...)
}

// shared is a Sink for concurrent use.
type shared struct {
	tacho.Sink
	mu sync.Mutex
}

func (s *shared) Add(r *tacho.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Sink.Add(r)
}

// All three executors produce the same records for one plan, except for the
// times of server and network.
func TestExecutorsDoTheSame(t *testing.T) {
	type request struct {
		session              uint64
		turn, turns, stage   int
		id                   string
		due                  time.Duration
		input, asked, output int
	}
	for _, load := range []struct {
		name   string
		change func(*plan.Plan)
	}{
		{"at a rate", func(p *plan.Plan) { p.RequestRate = 40 }},
		{"two levels", func(p *plan.Plan) { list(p, "request-rate", "20,40") }},
		{"in a closed loop", func(p *plan.Plan) { p.MaxConcurrency = 4 }},
	} {
		t.Run(load.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				url, _ := serve(t, nil)
				carriedOut := func(env run.Env, change func(*plan.Plan)) (out []request) {
					p := planFor(url, load.change)
					p.NumPrompts, p.Seed = 30, new(uint64(5))
					change(&p)
					res := execute(t.Context(), p, env)
					if res.err != nil {
						t.Fatal(res.err)
					}
					for i := range res.records {
						r := &res.records[i]
						due := r.Due
						if p.MaxConcurrency > 0 {
							due = 0 // when a slot is free
						}
						out = append(out, request{r.Session, r.Turn, r.Turns, r.Stage, r.ID, due, metric.InputTokens(r), r.Asked, r.Output})
					}
					slices.SortFunc(out, func(a, b request) int { return cmp.Or(a.stage-b.stage, cmp.Compare(a.session, b.session)) })
					return out
				}
				local := carriedOut(run.Env{}, func(*plan.Plan) {})
				far := carriedOut(run.Env{Agents: &nearAgents{n: 2, env: run.Env{Dial: network.Dial}}}, func(*plan.Plan) {})
				computed := carriedOut(run.Env{}, func(p *plan.Plan) { p.Virtual, p.Sim = true, "vllm-8b-h100" })
				if len(local) == 0 || !slices.Equal(local, far) {
					t.Errorf("agents sent other requests:\n%v\n%v", far, local)
				}
				if !slices.Equal(local, computed) {
					t.Errorf("in virtual time there are other requests:\n%v\n%v", computed, local)
				}
			})
		})
	}
}
