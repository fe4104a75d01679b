package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/cluster"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
)

// cutting runs three agents at 15 requests/s for 40 s, and cuts some of them off from NATS for a
// while, as a network without answers does.
func cutting(t *testing.T, p *pool, cut []int, after, length time.Duration, seed uint64) (out result, got *requestLog) {
	t.Helper()
	var links []*link
	for i := range 3 {
		k, far := p.newLink()
		k.quiet = true
		links = append(links, k)
		p.join(t, fmt.Sprintf("agent-%d", i), func(o *cluster.AgentOptions) { o.Access = far })
	}
	c := p.lead(t, 3, func(o *cluster.Options) { o.Timeout, o.OnLoss = 10*time.Second, plan.Reassign })
	url, got := p.serve(t)
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-t.Context().Done():
		}
	}
	set := func(off bool) {
		for _, i := range cut {
			links[i].set(off)
		}
	}
	got.after(t, 15, func() {
		wait(after)
		set(true)
		wait(length)
		set(false)
	})
	out = p.carryOut(t.Context(), planFor(url, func(q *plan.Plan) { q.RequestRate, q.NumPrompts, q.Seed = 15, 600, &seed }), c, nil)
	return out, got
}

// If all agents are cut off, none is lost. They send nothing after the end of their leases, and
// the rest when they are heard again.
func TestAllAgentsAreCutOff(t *testing.T) {
	for _, length := range []time.Duration{8 * time.Second, 14 * time.Second, 30 * time.Second, 2 * time.Minute} {
		t.Run(length.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, p *pool) {
				out, got := cutting(t, p, []int{0, 1, 2}, 10*time.Second, length, 1)
				checkComplete(t, out, got, 600)
				reasons := out.levels[0].Summary.Verdict.Reasons
				paused := reasonOf(reasons, "agent-paused")
				if long := length > 9*time.Second; (paused != nil) != long || p.said.has("Agents are heard again.") == (length < 5*time.Second) || reasonOf(reasons, "agent-lost") != nil {
					t.Errorf("%v", reasons)
				}
			})
		})
	}
}

// If no agent is heard for too long, the run ends and can be resumed.
func TestNoAgentIsHeardForTooLong(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		out, _ := cutting(t, p, []int{0, 1, 2}, 10*time.Second, time.Hour, 1)
		if out.err == nil || !strings.Contains(out.err.Error(), "no agent is heard after 10m0s") || !strings.Contains(out.err.Error(), "--resume") {
			t.Errorf("the run ended with %v", out.err)
		}
	})
}

// An agent that is cut off sends nothing after its lease, which ends before another agent takes
// over. The requests that both sent are counted when it returns, and bounded by the schedule if it does not.
func TestExtraLoadIsCounted(t *testing.T) {
	for seed := range uint64(6) {
		length, want := time.Hour, "both sent up to "
		if seed == 0 {
			length, want = 14*time.Second, "both sent "
		}
		t.Run(fmt.Sprint(length, " ", seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, p *pool) {
				out, got := cutting(t, p, []int{1}, 5*time.Second, length, seed)
				must.Do(t, out.err)
				if len(out.records) != 600 {
					t.Errorf("%d of 600 records", len(out.records))
				}
				s := out.levels[0].Summary
				r, extra := reasonOf(s.Verdict.Reasons, "extra-load"), 0
				for _, a := range s.Config.Agents {
					extra += a.Extra
				}
				got.mu.Lock()
				defer got.mu.Unlock()
				twice := len(got.duplicates)
				if r == nil || !strings.Contains(r.Text, want) || twice == 0 || twice > 80 {
					t.Errorf("%d requests were sent twice: %v", twice, s.Verdict.Reasons)
				}
				if exact := length < time.Hour; exact && extra != twice || extra < twice || extra > twice+20 {
					t.Errorf("%d requests were sent twice, the report has %d", twice, extra)
				}
			})
		})
	}
}

// Requests that a lost agent sent and whose records did not arrive are not received. The others
// of its share were never sent, as far as is known.
func TestNotReceivedIsNotUnsent(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		k, far := p.newLink()
		lossy := &sluice{dial: k.dial}
		far.Dial = lossy.to
		p.join(t, "stays", nil)
		p.join(t, "goes", func(o *cluster.AgentOptions) { o.Access = far })
		c := p.lead(t, 2, func(o *cluster.Options) { o.Timeout, o.OnLoss = 10*time.Second, "keep" })
		url, got := p.serve(t)
		got.after(t, 100, func() {
			lossy.closed.Store(true) // its heartbeats arrive, and its records do not
			pass(4 * time.Second)
			k.set(true)
		})
		out := p.execute(t.Context(), planFor(url, func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 20, 600 }), c)
		must.Do(t, out.err)
		s := out.levels[0].Summary
		missing, lost := s.Config.NotReceived(), s.Unsent().Due
		if missing < 35 || missing > 45 || len(out.records)+missing+lost != 600 {
			t.Errorf("%d records, %d not received, %d never sent", len(out.records), missing, lost)
		}
		r := reasonOf(s.Verdict.Reasons, "not-received")
		if want := fmt.Sprintf("the records of %d of %d sent requests were not received", missing, missing+len(out.records)); r == nil || r.Severity != metric.Invalid || !strings.Contains(r.Text, want) {
			t.Errorf("want %q, got %v", want, s.Verdict.Reasons)
		}
		// The agent continues with --on-loss keep, and the coordinator cannot know it.
		if r := reasonOf(s.Verdict.Reasons, "unsent"); r == nil || !strings.Contains(r.Text, fmt.Sprintf("%d of ", lost)) || !strings.Contains(r.Text, "never sent, as far as is known") {
			t.Errorf("%v", s.Verdict.Reasons)
		}
		if r := reasonOf(s.Verdict.Reasons, "agent-lost"); r == nil || !strings.Contains(r.Text, "and may have sent the others") {
			t.Errorf("%v", s.Verdict.Reasons)
		}
	})
}
