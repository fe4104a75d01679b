package cluster_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/cluster"
	"github.com/tacho-bench/tacho/internal/recordjson"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// stopping runs two agents. When the second has finished a request and is sending another, do
// stops it. The timeout for silent agents is long.
func stopping(t *testing.T, p *pool, spool string, do func(got *requestLog, stop func())) (out result, got *requestLog) {
	t.Helper()
	p.join(t, "stays", nil)
	stop := p.join(t, "stopped", func(o *cluster.AgentOptions) { o.Spool = spool })
	c := p.lead(t, 2, func(o *cluster.Options) { o.Run, o.OnLoss = "night", plan.Reassign })
	url, got := p.serve(t)
	got.between(t, "r-1", "r-41", func() { do(got, stop) }) // the second agent has the odd ones
	out = p.execute(t.Context(), planFor(url, func(q *plan.Plan) {
		q.RequestRate, q.NumPrompts, q.RandomOutputLen = 50, 120, workload.Fixed(150)
	}), c, got.keep)
	must(t, out.err)
	return out, got
}

// limiter returns a function that limits the messages in the stream of the run, so NATS
// rejects more. -1 means no limit.
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

// checkResent fails unless each request of the run has one record and the second agent was
// lost for the given reason.
func checkResent(t *testing.T, out result, got *requestLog, why string) {
	t.Helper()
	seen, by := map[string]int{}, map[string]int{}
	for _, r := range out.records {
		seen[r.ID]++
		by[r.Agent]++
		if seen[r.ID] > 1 || !r.OK() {
			t.Errorf("%s is there %d times, %v", r.ID, seen[r.ID], r.Failure)
		}
	}
	if len(seen) != 120 || len(got.duplicates) == 0 {
		t.Errorf("%d of 120 requests, %v, %d were sent again", len(seen), by, len(got.duplicates))
	}
	if r := reasonOf(out.levels[0].Summary.Verdict.Reasons, "agent-lost"); r == nil || !strings.Contains(r.Text, "agent stopped (share 2 of 2) was lost ("+why) {
		t.Errorf("%v", out.levels[0].Summary.Verdict.Reasons)
	}
}

// A stopped agent delivers its finished records and announces its stop. Only its unfinished
// requests are sent again.
func TestStoppedAgent(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		limit, spool := limiter(t, p), t.TempDir()
		var waited []string
		out, got := stopping(t, p, spool, func(got *requestLog, stop func()) {
			limit(1)
			eventually(t.Context(), func() bool { waited = got.missing(recordsIn(spool)); return len(waited) > 0 })
			go stop()
			limit(-1)
		})
		checkResent(t, out, got, "it was stopped")
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

// recordsIn returns the ids of the records in a spool.
func recordsIn(spool string) (ids []string) {
	files, _ := filepath.Glob(filepath.Join(spool, "*", "*.jsonl"))
	for _, name := range files {
		text, _ := os.ReadFile(name) // may be deleted already
		for line := range bytes.Lines(text) {
			var r tacho.Record
			if recordjson.Decode(bytes.TrimSpace(line), &r) == nil && r.ID != "" {
				ids = append(ids, r.ID)
			}
		}
	}
	return ids
}

// missing returns the ids without a stored record.
func (a *requestLog) missing(ids []string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(ids, func(id string) bool { return a.kept[id] })
}

// If NATS does not accept the records of a stopped agent, the run does not wait for them.
func TestStoppedAgentCannotHandOver(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		limit := limiter(t, p)
		out, got := stopping(t, p, t.TempDir(), func(_ *requestLog, stop func()) {
			limit(1)
			go stop()
			eventually(t.Context(), func() bool { return p.said.has("Agent stays takes over share 2.") })
			limit(-1)
		})
		checkResent(t, out, got, "it was stopped before it handed over")
	})
}
