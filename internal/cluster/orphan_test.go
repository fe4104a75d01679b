package cluster_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/cluster"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/plan"
)

// arrived returns the number of requests that have arrived.
func (a *requestLog) arrived() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.bodies) + len(a.duplicates)
}

// Agents whose coordinator died stop the load after a while. A coordinator that continues the run has them send the rest.
func TestOrphansStopTheLoad(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		for _, name := range []string{"one", "two"} {
			p.join(t, name, func(o *cluster.AgentOptions) { o.OrphanTimeout = time.Minute })
		}
		k, cutOff := p.newLink()
		journal := filepath.Join(t.TempDir(), "journal")
		named := func(o *cluster.Options) { o.Run, o.OnLoss, o.Journal = "night", plan.Reassign, journal }
		first := p.lead(t, 2, func(o *cluster.Options) { named(o); o.Access = cutOff })
		next := p.lead(t, 2, func(o *cluster.Options) { named(o); o.Resume = true })
		url, got := p.serve(t)
		q := planFor(url, func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 2, 400 }) // more than three minutes
		done := make(chan result, 1)
		go func() { done <- p.execute(t.Context(), q, first) }()
		if !eventually(t.Context(), func() bool { return got.arrived() >= 15 }) {
			t.Fatal("nothing arrived")
		}
		k.set(true) // agents see a dead coordinator
		cut := time.Now()
		if !eventually(t.Context(), func() bool {
			return strings.Count(p.said.all(), "No coordinator was heard for 1m0s: the load stops") == 2
		}) {
			t.Fatalf("the agents said %s", p.said.all())
		}
		if took := time.Since(cut); took > 62*time.Second || took < 50*time.Second {
			t.Errorf("the agents stopped %v after their coordinator died", took)
		}
		pass(time.Second) // requests under way
		before := got.arrived()
		pass(time.Minute)
		if after := got.arrived(); after > before || before > 200 {
			t.Errorf("%d requests when the agents stopped, %d a minute later", before, after)
		}

		out := p.execute(t.Context(), q, next)
		must.Do(t, out.err)
		seen := map[string]int{}
		for _, r := range out.records {
			if seen[r.ID]++; seen[r.ID] > 1 || !r.OK() {
				t.Errorf("%s is there %d times, failure %v", r.ID, seen[r.ID], r.Failure)
			}
		}
		if len(seen) != 400 {
			t.Errorf("%d of 400 requests", len(seen))
		}
		if r := reasonOf(out.levels[0].Summary.Verdict.Reasons, "agent-lost"); r == nil || !strings.Contains(r.Text, "it stopped without a coordinator") {
			t.Errorf("%v", out.levels[0].Summary.Verdict.Reasons)
		}
		k.set(false)
		<-done // its result does not matter
	})
}
