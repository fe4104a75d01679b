package cluster_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tacho/cluster"
	"tacho/plan"
	"tacho/workload"
)

// stopping is a run of two agents. When the second has finished something, and is at
// something else, that is done which stops it. Nobody is lost for being silent so soon.
func stopping(t *testing.T, p *pool, do func(stop func())) (out result, got *asked) {
	t.Helper()
	p.join(t, "stays", nil)
	stop := p.join(t, "stopped", nil)
	c := p.lead(t, 2, func(o *cluster.Options) { o.Run, o.OnLoss = "night", plan.Reassign })
	url, got := serve(t)
	got.between(t, "r-1", "r-41", func() { do(stop) }) // odd ones are of the second
	out = execute(t.Context(), planFor(url, func(q *plan.Plan) {
		q.RequestRate, q.NumPrompts, q.RandomOutputLen = 50, 120, workload.Fixed(150)
	}), c, got.keep)
	must(t, out.err)
	return out, got
}

// goneOn wants each request of such a run once, and the reason for which its second
// agent was lost.
func goneOn(t *testing.T, out result, got *asked, why string) (by map[string]int) {
	t.Helper()
	seen, by := map[string]int{}, map[string]int{}
	for _, r := range out.records {
		seen[r.ID]++
		by[r.Agent]++
		if seen[r.ID] > 1 || !r.OK() {
			t.Errorf("%s is there %d times, %v", r.ID, seen[r.ID], r.Failure)
		}
	}
	if len(seen) != 120 || len(got.twice) == 0 {
		t.Errorf("%d of 120 requests, %v, %d were sent again", len(seen), by, len(got.twice))
	}
	if r := reasonOf(out.levels[0].Summary.Verdict.Reasons, "agent-lost"); r == nil || !strings.Contains(r.Text, "agent stopped (share 2 of 2) was lost: "+why) {
		t.Errorf("%v", out.levels[0].Summary.Verdict.Reasons)
	}
	return by
}

// An agent that is stopped hands over what it has finished, and the run knows at once:
// what it was at is sent again, once.
func TestStoppedAgent(t *testing.T) {
	p := newPool(t)
	out, got := stopping(t, p, func(stop func()) { stop() })
	if by := goneOn(t, out, got, "it was stopped"); by["stopped"] == 0 {
		t.Errorf("what it had finished is not here: %v", by)
	}
}

// Where NATS takes nothing of what a stopped agent has finished, the run knows as well,
// and does not wait for what will never come.
func TestStoppedAgentCannotHandOver(t *testing.T) {
	p := newPool(t)
	nc, err := nats.Connect(p.access.URL, nats.Token(p.access.Token))
	must(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	must(t, err)
	limit := func(most int64) {
		s, err := js.Stream(t.Context(), "tacho-night")
		if err == nil {
			now := s.CachedInfo().Config
			now.MaxMsgs, now.Discard = most, jetstream.DiscardNew
			_, err = js.UpdateStream(t.Context(), now)
		}
		if err != nil {
			t.Error(err)
		}
	}
	out, got := stopping(t, p, func(stop func()) {
		limit(1)
		go stop()
		for !strings.Contains(p.said.all(), "Agent stays takes over share 2.") && t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		limit(-1)
	})
	goneOn(t, out, got, "it was stopped, and had no time to hand over")
}
