package cluster_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"tacho"
	"tacho/cluster"
	"tacho/internal/recordjson"
	"tacho/plan"
	"tacho/workload"
)

// stopping is a run of two agents. When the second has finished something, and is at
// something else, that is done which stops it. Nobody is lost for being silent so soon.
func stopping(t *testing.T, p *pool, spool string, do func(got *asked, stop func())) (out result, got *asked) {
	t.Helper()
	p.join(t, "stays", nil)
	stop := p.join(t, "stopped", func(o *cluster.AgentOptions) { o.Spool = spool })
	c := p.lead(t, 2, func(o *cluster.Options) { o.Run, o.OnLoss = "night", plan.Reassign })
	url, got := p.serve(t)
	got.between(t, "r-1", "r-41", func() { do(got, stop) }) // odd ones are of the second
	out = p.execute(t.Context(), planFor(url, func(q *plan.Plan) {
		q.RequestRate, q.NumPrompts, q.RandomOutputLen = 50, 120, workload.Fixed(150)
	}), c, got.keep)
	must(t, out.err)
	return out, got
}

// limiter returns a function that has NATS keep so many messages of such a run at most:
// it takes no more then. -1 is no limit.
func limiter(t *testing.T, p *pool) func(most int64) {
	t.Helper()
	js, err := jetstream.New(p.connect(t))
	must(t, err)
	return func(most int64) {
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
}

// goneOn wants each request of such a run once, and the reason for which its second
// agent was lost.
func goneOn(t *testing.T, out result, got *asked, why string) {
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
}

// An agent that is stopped hands over what it has finished, and the run knows at once:
// what it was at is sent again, once.
func TestStoppedAgent(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		limit, spool := limiter(t, p), t.TempDir()
		var waited []string
		out, got := stopping(t, p, spool, func(got *asked, stop func()) {
			limit(1)
			eventually(t.Context(), func() bool { waited = got.missing(recordsIn(spool)); return len(waited) > 0 })
			go stop()
			limit(-1)
		})
		goneOn(t, out, got, "it was stopped")
		for _, r := range out.records {
			if slices.Contains(waited, r.ID) && r.Agent != "stopped" {
				t.Errorf("%s had finished, and was sent again by %s", r.ID, r.Agent)
			}
		}
		if len(waited) == 0 {
			t.Error("nothing waited to be handed over")
		}
	})
}

// recordsIn are the ids of the records in a spool.
func recordsIn(spool string) (ids []string) {
	files, _ := filepath.Glob(filepath.Join(spool, "*", "*.jsonl"))
	for _, name := range files {
		text, _ := os.ReadFile(name) // it may be gone
		for line := range bytes.Lines(text) {
			var r tacho.Record
			if recordjson.Decode(bytes.TrimSpace(line), &r) == nil && r.ID != "" {
				ids = append(ids, r.ID)
			}
		}
	}
	return ids
}

// missing are those of some ids that are not on record.
func (a *asked) missing(ids []string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(ids, func(id string) bool { return a.kept[id] })
}

// Where NATS takes nothing of what a stopped agent has finished, the run knows as well,
// and does not wait for what will never come.
func TestStoppedAgentCannotHandOver(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		limit := limiter(t, p)
		out, got := stopping(t, p, t.TempDir(), func(_ *asked, stop func()) {
			limit(1)
			go stop()
			eventually(t.Context(), func() bool { return p.said.has("Agent stays takes over share 2.") })
			limit(-1)
		})
		goneOn(t, out, got, "it was stopped, and had no time to hand over")
	})
}
