package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/cluster"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

func reasonOf(all []metric.Reason, code string) *metric.Reason {
	for i := range all {
		if all[i].Code == code {
			return &all[i]
		}
	}
	return nil
}

// The finished records of a lost agent are stored, its share is named, and the run is
// DEGRADED. No record is duplicated.
func TestLostAgent(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		p.join(t, "stays", nil)
		k, far := p.newLink()
		p.join(t, "dies", func(o *cluster.AgentOptions) { o.Access = far })
		c := p.lead(t, 2, func(o *cluster.Options) { o.Timeout = 10 * time.Second })
		url, got := p.serve(t)
		got.between(t, "r-0", "r-30", func() { k.set(true) }) // the others see a dead agent
		out := p.execute(t.Context(), planFor(url, func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 20, 60 }), c, got.keep)
		must.Do(t, out.err)
		seen := map[string]int{}
		for _, r := range out.records {
			seen[r.ID]++
			if seen[r.ID] > 1 || got.bodies[r.ID] == "" {
				t.Errorf("%s is there %d times", r.ID, seen[r.ID])
			}
		}
		if len(out.records) < 30 || len(out.records) >= 60 {
			t.Errorf("%d records", len(out.records))
		}
		s := out.levels[0].Summary
		lost := reasonOf(s.Verdict.Reasons, "agent-lost")
		if lost == nil || lost.Severity != metric.Degraded || !strings.Contains(lost.Text, "agent dies (share 1 of 2) was lost (no message for 10s)") {
			t.Errorf("%v", s.Verdict.Reasons)
		}
		missing := reasonOf(s.Verdict.Reasons, "unsent")
		if want := fmt.Sprintf("%d of 60 due requests were never sent, as far as is known", 60-len(out.records)); missing == nil || missing.Severity != metric.Invalid || !strings.Contains(missing.Text, want) {
			t.Errorf("want %q as INVALID, got %v", want, s.Verdict.Reasons)
		}
		for _, a := range s.Config.Agents {
			if (a.Missing != "") != (a.Name == "dies") || a.Requests == 0 {
				t.Errorf("%+v", a)
			}
		}
	})
}

// With reassign, another agent sends the rest, and the run is complete.
func TestShareIsTakenOver(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		p.join(t, "stays", nil)
		die := p.join(t, "dies", nil)
		c := p.lead(t, 2, func(o *cluster.Options) { o.OnLoss = plan.Reassign })
		url, got := p.serve(t)
		got.between(t, "r-0", "r-30", die)
		out := p.execute(t.Context(), planFor(url, func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 20, 60 }), c, got.keep)
		must.Do(t, out.err)
		seen := map[uint64]int{}
		for _, r := range out.records {
			if seen[r.Session]++; seen[r.Session] > 1 && r.OK() {
				t.Errorf("session %d is there %d times", r.Session, seen[r.Session])
			}
		}
		if len(seen) != 60 || len(got.bodies) != 60 {
			t.Errorf("%d of 60 sessions, the server saw %d", len(seen), len(got.bodies))
		}
		s := out.levels[0].Summary
		if r := reasonOf(s.Verdict.Reasons, "agent-lost"); r == nil || r.Severity != metric.Degraded || !strings.Contains(r.Text, "took over") {
			t.Errorf("%v", s.Verdict.Reasons)
		}
	})
}

// If the first agent cannot take over a share, the next one does.
func TestTakeoverIsTriedWithAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		var opened atomic.Int32
		p.join(t, "a-cannot", func(o *cluster.AgentOptions) {
			o.Env = func() run.Env {
				if opened.Add(1) == 1 {
					return p.env()
				}
				env := p.env()
				env.Proxy = func(*http.Request) (*url.URL, error) { return nil, errors.New("no way to a second share") }
				return env
			}
		})
		p.join(t, "b-can", nil)
		die := p.join(t, "c-dies", nil)
		c := p.lead(t, 3, func(o *cluster.Options) { o.OnLoss = plan.Reassign })
		address, got := p.serve(t)
		// The others have as many shares, so the first is asked, and opens the servers again.
		for _, last := range []string{"r-57", "r-58"} {
			got.hold(last, func() bool { return p.said.has("could not take over") })
		}
		got.between(t, "r-2", "r-32", die) // every third is sent by the third agent
		out := p.execute(t.Context(), planFor(address, func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 20, 60 }), c, got.keep)
		must.Do(t, out.err)
		seen := map[uint64]bool{}
		for _, r := range out.records {
			seen[r.Session] = true
		}
		if len(seen) != 60 || opened.Load() != 2 {
			t.Errorf("%d of 60 sessions; the first agent opened the servers %d times", len(seen), opened.Load())
		}
		text := fmt.Sprint(out.levels[0].Summary.Verdict.Reasons)
		if strings.Contains(text, "agent a-cannot took over") {
			t.Errorf("whoever could not is said to have taken over: %s", text)
		}
		for _, want := range []string{"it could not take the share over", "no way to a second share", "agent b-can took over after"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in %s", want, text)
			}
		}
	})
}

// A second coordinator does not get agents that work for another.
func TestSecondCoordinatorIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		p.join(t, "only", nil)
		first := p.lead(t, 1, nil)
		url, _ := p.serve(t)
		done := make(chan result, 1)
		change := func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 20, 60 }
		go func() { done <- p.execute(context.Background(), planFor(url, change), first) }()
		p.said.await(t, "Working for")
		second := p.lead(t, 1, func(o *cluster.Options) { o.Wait = 5 * time.Second })
		out := p.execute(t.Context(), planFor(url, nil), second)
		if out.err == nil || !strings.Contains(out.err.Error(), "only works for another coordinator") || len(out.records) > 0 {
			t.Errorf("%v, %d records", out.err, len(out.records))
		}
		if out := <-done; out.err != nil || len(out.records) != 60 {
			t.Errorf("the first was disturbed: %v, %d records", out.err, len(out.records))
		}
	})
}

// Stopping the run stops all agents, and finished requests are stored.
func TestStopReachesAll(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		c := p.many(t, 3)
		url, got := p.serve(t)
		ctx, cancel := context.WithCancel(t.Context())
		got.between(t, "r-0", "r-30", cancel)
		out := p.execute(ctx, planFor(url, func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 20, 1000 }), c, got.keep)
		if !errors.Is(out.err, context.Canceled) || len(out.levels) != 1 || !out.levels[0].Summary.Config.Interrupted {
			t.Fatalf("%v, %d levels", out.err, len(out.levels))
		}
		if n := len(out.records); n == 0 || n > 500 {
			t.Errorf("%d records", n)
		}
	})
}

// An agent names the reason for which it refuses a plan, and the run names the agent.
func TestRefusalIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		p.join(t, "strict", func(o *cluster.AgentOptions) { o.Allow = []string{"http://elsewhere:8000"} })
		url, got := p.serve(t)
		out := p.execute(t.Context(), planFor(url, nil), p.lead(t, 1, nil))
		if out.err == nil || !strings.Contains(out.err.Error(), "agent strict") || !strings.Contains(out.err.Error(), "--allow-target "+url) || len(got.bodies) > 0 {
			t.Errorf("%v, %d requests", out.err, len(got.bodies))
		}
		if !p.said.has("Refused a command: this agent does not permit the target " + url) {
			t.Errorf("the agent said nothing: %s", p.said.all())
		}
	})
}

// Agents that trust another coordinator are not used.
func TestUntrustedCoordinator(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		other := must.Get(cluster.NewIdentity())(t)
		p.join(t, "wary", func(o *cluster.AgentOptions) { o.Trust = []string{other.Public()} })
		url, _ := p.serve(t)
		out := p.execute(t.Context(), planFor(url, nil), p.lead(t, 1, func(o *cluster.Options) { o.Wait = 5 * time.Second }))
		if out.err == nil || !strings.Contains(out.err.Error(), "wary refuses: the coordinator "+p.identity.Public()+" is not trusted here") {
			t.Error(out.err)
		}
	})
}

// If an agent dies between two levels, the others share the next level.
func TestAgentDiesBetweenLevels(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		p.join(t, "stays", nil)
		k, far := p.newLink()
		p.join(t, "dies", func(o *cluster.AgentOptions) { o.Access = far })
		c := p.lead(t, 2, func(o *cluster.Options) { o.Timeout = 5 * time.Second })
		url, got := p.serve(t)
		twice := planFor(url, func(q *plan.Plan) { q.Repeat = 2 })
		env := p.env()
		var out result
		env.Agents, env.Observer = c, levelObserver{each: func(l *outcome.Level) {
			k.set(true) // the others see a dead agent
			out.levels = append(out.levels, *l)
		}}
		r := must.Get(run.Open(t.Context(), twice, env))(t)
		defer r.Close()
		must.Do(t, r.Run(t.Context(), &seen{records: &out.records}))
		if len(out.levels) != 2 || len(out.records) != 2*twice.NumPrompts || len(got.duplicates) > 0 {
			t.Fatalf("%d levels with %d records; sent twice: %v", len(out.levels), len(out.records), got.duplicates)
		}
		if reasonOf(out.levels[0].Summary.Verdict.Reasons, "fewer-agents") != nil || reasonOf(out.levels[1].Summary.Verdict.Reasons, "fewer-agents") == nil {
			t.Errorf("%v, then %v", out.levels[0].Summary.Verdict.Reasons, out.levels[1].Summary.Verdict.Reasons)
		}
		if !p.said.has("The level starts without an agent: agent dies") {
			t.Error("nobody was told")
		}
	})
}
