package cluster_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/cluster"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/plan"
)

// A second coordinator of one run is refused while the first is alive, and continues the run
// after it died.
func TestSecondLeaderIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		p.join(t, "only", nil)
		url, got := p.serve(t)
		journal := filepath.Join(t.TempDir(), "journal")
		named := func(o *cluster.Options) { o.Run, o.Resume, o.Journal = "night", true, journal }
		k, cutOff := p.newLink()
		first := p.lead(t, 1, func(o *cluster.Options) { named(o); o.Access, o.Timeout = cutOff, 5*time.Second })
		second := p.lead(t, 1, named)
		third := p.lead(t, 1, named)
		refused, done := make(chan result, 1), make(chan result, 1)
		got.after(t, 15, func() { refused <- p.execute(t.Context(), planFor(url, nil), second) })
		slow := func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 10, 60 }
		go func() { done <- p.execute(t.Context(), planFor(url, slow), first) }()
		out := <-refused
		if out.err == nil || !strings.Contains(out.err.Error(), "another coordinator leads this run (\"process ") || len(out.records) > 0 {
			t.Fatalf("%v, %d records", out.err, len(out.records))
		}
		k.set(true) // NATS and the agent see a dead coordinator
		out = p.execute(t.Context(), planFor(url, slow), third)
		checkComplete(t, out, got, 60)
		if reasonOf(out.levels[0].Summary.Verdict.Reasons, "coordinator-restarted") == nil {
			t.Errorf("it began anew: %v", out.levels[0].Summary.Verdict.Reasons)
		}
		k.set(false)
		<-done // its result does not matter
	})
}

// The spool is empty after a run.
func TestSpoolIsEmptyAfterARun(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		spool := t.TempDir()
		p.join(t, "only", func(o *cluster.AgentOptions) { o.Spool = spool })
		url, got := p.serve(t)
		out := p.execute(t.Context(), planFor(url, func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 100, 60 }), p.lead(t, 1, nil))
		checkComplete(t, out, got, 60)
		var left []string
		if !eventually(t.Context(), func() bool {
			var err error
			left, err = filepath.Glob(filepath.Join(spool, "*"))
			return err == nil && len(left) == 2 && filepath.Base(left[0]) == "agent.nk" && filepath.Base(left[1]) == "lock"
		}) {
			t.Fatalf("there is %v", left)
		}
	})
}

// A second agent with the same spool is refused while the first is alive, because each would
// deliver what the other is writing.
func TestSpoolHasOneAgent(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		spool := t.TempDir()
		leave := p.join(t, "first", func(o *cluster.AgentOptions) { o.Spool = spool })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		err := cluster.RunAgent(ctx, cluster.AgentOptions{
			Access: p.access, Name: "second", Version: "test", Trust: []string{p.identity.Public()}, Allow: []string{"any"}, Spool: spool, SpoolLimit: 1 << 30,
			Env: p.env, Say: p.said.say, Joined: func(string) { t.Error("it joined") },
		})
		if err == nil || !strings.Contains(err.Error(), "another agent uses the spool "+spool) {
			t.Errorf("%v", err)
		}
		leave()
		p.join(t, "second", func(o *cluster.AgentOptions) { o.Spool = spool })
	})
}

// Undelivered records are deleted after a day, not before.
func TestOldSpoolsAreDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		spool := t.TempDir()
		for name, age := range map[string]time.Duration{"old": 25 * time.Hour, "young": time.Hour} {
			dir := filepath.Join(spool, name)
			must.Do(t, os.MkdirAll(dir, 0o700))
			for file, text := range map[string]string{"about.json": `{"run":"gone","try":"0-x","share":0}`, "0000000000000000.jsonl": "{}\n"} {
				path := filepath.Join(dir, file)
				must.Do(t, os.WriteFile(path, []byte(text), 0o600))
				must.Do(t, os.Chtimes(path, time.Time{}, time.Now().Add(-age)))
			}
		}
		p.join(t, "only", func(o *cluster.AgentOptions) { o.Spool = spool })
		if _, err := os.Stat(filepath.Join(spool, "old")); !os.IsNotExist(err) {
			t.Errorf("what is old is still there: %v", err)
		}
		if _, err := os.Stat(filepath.Join(spool, "young")); err != nil {
			t.Error(err)
		}
		if !p.said.has("Deleted records of an earlier run") {
			t.Errorf("it said %s", p.said.all())
		}
	})
}
