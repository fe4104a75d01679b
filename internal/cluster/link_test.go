package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/cluster"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/plan"
)

// A disconnected agent continues. After the link is restored, no record is missing or
// duplicated.
func TestCutLink(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		p.join(t, "near", nil)
		k, far := p.newLink()
		p.join(t, "far", func(o *cluster.AgentOptions) { o.Access = far })
		url, got := p.serve(t)
		c := p.lead(t, 2, nil)
		got.after(t, 15, func() { k.set(true) })
		got.after(t, 90, func() { k.set(false) })
		out := p.execute(t.Context(), planFor(url, func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 30, 90 }), c)
		checkComplete(t, out, got, 90)
		if n := len(out.levels[0].Summary.Config.Agents); n != 2 {
			t.Errorf("%d agents", n)
		}
	})
}

// If NATS stays unreachable, the run ends after a limit with advice how to continue.
func TestNATSGoneForGood(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		p.join(t, "goes-on", nil)
		k, far := p.newLink()
		c := p.lead(t, 1, func(o *cluster.Options) { o.Access, o.Timeout = far, 10*time.Second })
		url, got := p.serve(t)
		var cut time.Time
		got.after(t, 15, func() { cut = time.Now(); k.set(true) })
		out := p.carryOut(t.Context(), planFor(url, func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 30, 90 }), c, nil)
		if out.err == nil || !strings.Contains(out.err.Error(), "NATS is disconnected after 10m0s") || !strings.Contains(out.err.Error(), "--resume") {
			t.Errorf("the run ended with %v", out.err)
		}
		if took := time.Since(cut).Round(time.Minute); took != 10*time.Minute {
			t.Errorf("the run ended %v after NATS was gone", took)
		}
		got.mu.Lock()
		defer got.mu.Unlock()
		if len(got.bodies) != 90 {
			t.Errorf("the agent sent %d of 90 requests", len(got.bodies))
		}
	})
}

// A run that is stopped while NATS is disconnected ends soon, with a message about the agents.
func TestStopWhileNATSIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		p.join(t, "goes-on", nil)
		k, far := p.newLink()
		c := p.lead(t, 1, func(o *cluster.Options) { o.Access, o.Timeout = far, 10*time.Second })
		url, got := p.serve(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var stopped time.Time
		got.after(t, 15, func() {
			k.set(true)
			p.said.await(t, "because NATS is disconnected. Agents keep")
			stopped = time.Now()
			cancel()
		})
		out := p.execute(ctx, planFor(url, func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 30, 900 }), c)
		must.Do(t, c.Close(true))
		if took := time.Since(stopped); !errors.Is(out.err, context.Canceled) || took > 3*time.Second {
			t.Errorf("the run ended %v after it was stopped, with %v", took, out.err)
		}
		if !p.said.has("Agents cannot be stopped, because NATS is disconnected") {
			t.Errorf("the coordinator said %s", p.said.all())
		}
	})
}
