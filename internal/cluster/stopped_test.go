package cluster_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/cluster"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/recordjson"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// stopping runs two agents. When the second has finished a request and is sending another, do
// stops it. The timeout for silent agents is long.
func stopping(t *testing.T, p *pool, s *sluice, spool string, do func(got *requestLog, stop func())) (out result, got *requestLog) {
	t.Helper()
	p.join(t, "stays", nil)
	stop := p.join(t, "stopped", func(o *cluster.AgentOptions) { o.Spool, o.Access.Dial = spool, s.to })
	c := p.lead(t, 2, func(o *cluster.Options) { o.Run, o.OnLoss = "night", plan.Reassign })
	url, got := p.serve(t)
	got.between(t, "r-1", "r-41", func() { do(got, stop) }) // the second agent has the odd ones
	out = p.execute(t.Context(), planFor(url, func(q *plan.Plan) {
		q.RequestRate, q.NumPrompts, q.RandomOutputLen = 50, 120, workload.Fixed(150)
	}), c, got.keep)
	must.Do(t, out.err)
	return out, got
}

// A sluice is a connection to NATS that loses batches of records while it is closed.
type sluice struct {
	dial   func(network, address string) (net.Conn, error)
	closed atomic.Bool
}

func newSluice(p *pool) *sluice { return &sluice{dial: p.access.Dial} }

func (s *sluice) to(network, address string) (net.Conn, error) {
	c, err := s.dial(network, address)
	if err != nil {
		return nil, err
	}
	return &lossyConn{c, s}, nil
}

type lossyConn struct {
	net.Conn
	sluice *sluice
}

// Write implements io.Writer.
func (c *lossyConn) Write(b []byte) (int, error) {
	if c.sluice.closed.Load() && bytes.Contains(b, []byte(".records.")) {
		return len(b), nil
	}
	return c.Conn.Write(b)
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
		s, spool := newSluice(p), t.TempDir()
		var waited []string
		out, got := stopping(t, p, s, spool, func(got *requestLog, stop func()) {
			s.closed.Store(true)
			eventually(t.Context(), func() bool { waited = got.missing(recordsIn(spool)); return len(waited) > 0 })
			go stop()
			s.closed.Store(false)
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

// If the records of a stopped agent do not arrive, the run does not wait for them.
func TestStoppedAgentCannotHandOver(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		s := newSluice(p)
		out, got := stopping(t, p, s, t.TempDir(), func(_ *requestLog, stop func()) {
			s.closed.Store(true)
			go stop()
			eventually(t.Context(), func() bool { return p.said.has("Agent stays takes over share 2.") })
			s.closed.Store(false)
		})
		checkResent(t, out, got, "it was stopped before it handed over")
	})
}
