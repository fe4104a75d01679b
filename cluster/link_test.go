package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"tacho/cluster"
	"tacho/plan"
)

// An agent that is cut off goes on; when the link is there again, nothing is
// missing and nothing is there twice.
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
		whole(t, out, got, 90)
		if n := len(out.levels[0].Summary.Config.Agents); n != 2 {
			t.Errorf("%d agents", n)
		}
	})
}

// If NATS is gone for good, the run ends after a limit, and says how to go on.
func TestNATSGoneForGood(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		p.join(t, "goes-on", nil)
		k, far := p.newLink()
		c := p.lead(t, 1, func(o *cluster.Options) { o.Access, o.Timeout = far, 10*time.Second })
		url, got := p.serve(t)
		var cut time.Time
		got.after(t, 15, func() { cut = time.Now(); k.set(true) })
		out := p.carryOut(t.Context(), planFor(url, func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 30, 90 }), c, nil)
		if out.err == nil || !strings.Contains(out.err.Error(), "NATS could not be reached for 10m0s") || !strings.Contains(out.err.Error(), "--resume") {
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

// A run that is stopped while NATS is away ends soon, and says why agents go on.
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
			p.said.await(t, "NATS is away: the agents go on")
			stopped = time.Now()
			cancel()
		})
		out := p.execute(ctx, planFor(url, func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 30, 900 }), c)
		must(t, c.Close())
		if took := time.Since(stopped); !errors.Is(out.err, context.Canceled) || took > 3*time.Second {
			t.Errorf("the run ended %v after it was stopped, with %v", took, out.err)
		}
		if !p.said.has("NATS is away, so the agents cannot be told to stop") {
			t.Errorf("the coordinator said %s", p.said.all())
		}
	})
}
