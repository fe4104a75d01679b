package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/plan"
)

// sees adds the record of a turn to a share.
func (s *share) sees(t *testing.T, id uint64, turn, turns int, failed bool) {
	t.Helper()
	r := record(int(id))
	r.Turn, r.Turns, r.Due, r.End = turn, turns, time.Duration(turn), time.Duration(turn+1)
	r.Answer = fmt.Sprintf("answer %d", turn)
	if failed {
		r.Failure = &tacho.Failure{Cause: "timeout"}
	}
	line := must.Get((&spool{keepAnswers: true}).encode(nil, r))(t)
	must.Do(t, s.addLines(line, nothing{}))
}

// A stopping agent accepts no share and no run, because it could not deliver the records.
func TestLeavingAgentTakesNothing(t *testing.T) {
	a := &agent{AgentOptions: AgentOptions{Spool: t.TempDir()}, ctx: t.Context()}
	a.stopShares()
	if err := a.prepare(&command{Kind: cmdPrepare, Task: &run.Task{}, Parts: 1}); !errors.Is(err, errStopping) {
		t.Error(err)
	}
	if err := a.admit(&command{Kind: cmdAssign, Run: "next"}); !errors.Is(err, errStopping) {
		t.Error(err)
	}
}

// The agent that takes over a share learns the progress of all unfinished sessions, whichever
// agent sent them.
func TestPast(t *testing.T) {
	c := &Coordinator{Options: Options{OnLoss: "reassign"}}
	l := &levelRun{task: &run.Task{}}
	first := c.newShare(l, 0, 2, &member{clock: clock{same: true}})
	other := c.newShare(l, 1, 2, &member{clock: clock{same: true}})
	second := c.newShare(l, 0, 2, &member{clock: clock{same: true}}) // took over from the first
	first.sees(t, 1, 0, 0, false)                                    // one request
	first.sees(t, 2, 0, 2, false)
	first.sees(t, 2, 1, 2, false) // finished
	first.sees(t, 4, 0, 3, false)
	second.sees(t, 4, 1, 3, false) // by two agents
	first.sees(t, 6, 0, 2, false)
	second.sees(t, 6, 1, 2, false) // by two agents, finished
	first.sees(t, 8, 0, 3, true)
	other.sees(t, 3, 0, 3, false)
	text := must.Get(json.Marshal(l.progress(0, time.Minute)))(t)
	taker := &agent{}
	for at := 0; at < len(text); at += 10 {
		for range 2 { // a command may arrive twice
			must.Do(t, taker.addProgress(&command{Share: 7, Offset: at, Progress: text[at:min(at+10, len(text))]}))
		}
	}
	if taker.addProgress(&command{Share: 7, Offset: len(text) + 1}) == nil || taker.addProgress(&command{Share: 7, Offset: -1}) == nil {
		t.Error("a gap was not noticed")
	}
	if other, err := taker.takeProgress(&command{Share: 8, Offset: len(text)}); err == nil {
		t.Errorf("another share knows it, too: %v", other)
	}
	got := must.Get(taker.takeProgress(&command{Share: 7, Offset: len(text)}))(t)
	if !slices.Equal(got.Skip, []uint64{1, 2, 4, 6, 8}) || got.Elapsed != time.Minute {
		t.Errorf("it leaves out %v, at %v", got.Skip, got.Elapsed)
	}
	if b := got.Partial; fmt.Sprint(b) != "[{4 [{0 0s 1ns {answer 0 0}} {1 1ns 2ns {answer 1 0}}]} {8 [{0 0s -1ns { 0}}]}]" {
		t.Errorf("it goes on with %v", b)
	}
}

// The progress of a long level is split into messages that NATS accepts.
func TestPastInPieces(t *testing.T) {
	c := &Coordinator{Options: Options{OnLoss: "reassign"}}
	l := &levelRun{task: &run.Task{}}
	s := c.newShare(l, 0, 1, &member{clock: clock{same: true}})
	for i := range uint64(300_000) {
		s.done = append(s.done, 1<<60+i)
	}
	for i := range 40 {
		s.sees(t, uint64(i), 0, 2, false)
		s.partial[uint64(i)].Finished[0].Answer.Text = strings.Repeat("x", 30_000)
	}
	sealer, agent := pair(t)
	text := must.Get(json.Marshal(l.progress(0, time.Minute)))(t)
	o := command{Kind: cmdProgress}
	for o.Progress = range slices.Chunk(text, maxProgressBytes) {
		if n := len(sealer.mustSeal(t, agent, o).Data); n > 1<<20 {
			t.Errorf("an order of %d bytes", n)
		}
		must.Do(t, agent.addProgress(&o))
		o.Offset += len(o.Progress)
	}
	got := must.Get(agent.takeProgress(&o))(t)
	if len(got.Skip) != 300_040 || len(got.Partial) != 40 || o.Offset < 10*maxProgressBytes {
		t.Errorf("%d sessions are left out, %d go on, in %d bytes", len(got.Skip), len(got.Partial), o.Offset)
	}
}

// The advice after a loss names an option that was not used yet.
func TestAdviceOnLoss(t *testing.T) {
	if p := plan.Default(); p.OnLoss != plan.Reassign {
		t.Errorf("by default, the share of a lost agent is treated by %q", p.OnLoss)
	}
	for how, want := range map[string]bool{"": true, "reassign": false} {
		c, l := &Coordinator{Options: Options{OnLoss: how}}, &levelRun{task: &run.Task{}}
		s := c.newShare(l, 0, 1, &member{})
		s.Lost = "its process died"
		l.explain(s)
		r := l.reasons
		if len(r) != 1 || strings.Contains(r[0].Text, "--on-loss reassign") != want {
			t.Errorf("with --on-loss %q it says %v", how, r)
		}
	}
}

// A batch after missing bytes changes nothing, and the agent sends it again. Each record is added
// once.
func TestMessageBeforeIsMissing(t *testing.T) {
	var all []byte
	var ends []int
	for i := range 3 {
		all = must.Get((&spool{}).encode(all, record(i)))(t)
		ends = append(ends, len(all))
	}
	var got []uint64
	sink := sinkFunc(func(r *tacho.Record) error { got = append(got, r.Session); return nil })
	s := &share{member: &member{clock: clock{same: true}}, partial: map[uint64]*partialSession{}}
	c := &Coordinator{}
	message := func(from, to int, last string) error {
		h := nats.Header{offsetHeader: []string{strconv.Itoa(from)}}
		if last != "" {
			h.Set(endHeader, "1")
			return c.addBatch(s, &nats.Msg{Header: h, Data: []byte(last)}, &run.Drive{Sink: sink})
		}
		return c.addBatch(s, &nats.Msg{Header: h, Data: all[from:to]}, &run.Drive{Sink: sink})
	}
	must.Do(t, message(0, ends[0], ""))
	must.Do(t, message(ends[1], ends[2], ""))
	must.Do(t, message(ends[2], ends[2], "{}"))
	if s.ended || s.received != int64(ends[0]) {
		t.Errorf("after a gap: ended %v, %d bytes received", s.ended, s.received)
	}
	must.Do(t, message(ends[0], ends[1], ""))
	must.Do(t, message(ends[1], ends[2], ""))
	must.Do(t, message(ends[2], ends[2], "{}"))
	if !slices.Equal(got, []uint64{0, 1, 2}) || !s.ended {
		t.Errorf("%v, ended %v", got, s.ended)
	}
}

// TestStartIsMonotonic checks that setting the wall clock during a level does not move the
// schedule, because its start is on the monotonic clock.
func TestStartIsMonotonic(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(time.Minute).Round(0)
	start := monotonic(at.UnixNano())
	if !strings.Contains(start.String(), "m=+") {
		t.Errorf("the level starts at %v, which has no monotonic reading", start)
	}
	if start.UnixNano() != at.UnixNano() {
		t.Errorf("the level starts at %v, want %v", start, at)
	}
}

// A level that ends before the next check has heard its agents.
func TestEndOfALevelEndsTheSilence(t *testing.T) {
	var said []string
	c := &Coordinator{Options: Options{Say: func(line string) { said = append(said, line) }}}
	c.setSilent("no agent is heard")
	must.Do(t, c.collect(t.Context(), newLevelRun(&run.Task{}, "0-x"), &run.Drive{Live: &live.Feed{}}))
	if c.silent != "" || len(said) != 2 || said[1] != "Agents are heard again." {
		t.Errorf("silent: %q; it said %q", c.silent, said)
	}
}
