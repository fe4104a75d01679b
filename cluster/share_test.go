package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"tacho"
	"tacho/plan"
	"tacho/run"
)

// sees has a share see the end of a turn.
func (s *share) sees(t *testing.T, id uint64, turn, turns int, failed bool) {
	t.Helper()
	r := record(int(id))
	r.Turn, r.Turns, r.Due, r.End = turn, turns, time.Duration(turn), time.Duration(turn+1)
	r.Said = fmt.Sprintf("answer %d", turn)
	if failed {
		r.Failure = &tacho.Failure{Cause: "timeout"}
	}
	line, err := (&spool{answers: true}).append(nil, r)
	must(t, err)
	must(t, s.lines(line, nothing{}))
}

// An agent that is being stopped takes up no share, and works for nobody else: it would
// not hand anything over.
func TestLeavingAgentTakesNothing(t *testing.T) {
	a := &agent{AgentOptions: AgentOptions{Spool: t.TempDir()}, ctx: t.Context()}
	a.quit()
	if err := a.prepare(&order{Kind: prepare, Task: &run.Task{}, N: 1}); !errors.Is(err, errLeaving) {
		t.Error(err)
	}
	if err := a.admit(&order{Kind: take, Run: "next"}, &envelope{}); !errors.Is(err, errLeaving) {
		t.Error(err)
	}
}

// Whoever takes a share over is told how far all sessions are, whoever was at them;
// those that came to their end are not among them.
func TestPast(t *testing.T) {
	c := &Coordinator{Options: Options{OnLoss: "reassign"}}
	l := &levelRun{task: &run.Task{}}
	first := c.newShare(l, 0, 2, &member{clock: clock{same: true}})
	other := c.newShare(l, 1, 2, &member{clock: clock{same: true}})
	second := c.newShare(l, 0, 2, &member{clock: clock{same: true}}) // took over what the first had
	first.sees(t, 1, 0, 0, false)                                    // one request
	first.sees(t, 2, 0, 2, false)
	first.sees(t, 2, 1, 2, false) // to its end
	first.sees(t, 4, 0, 3, false)
	second.sees(t, 4, 1, 3, false) // by two agents
	first.sees(t, 6, 0, 2, false)
	second.sees(t, 6, 1, 2, false) // by two, to its end
	first.sees(t, 8, 0, 3, true)
	other.sees(t, 3, 0, 3, false)
	var told recalls
	for range 2 { // an order may come twice
		for _, o := range l.past(0, time.Minute) {
			o.Try, o.Share = "0-x", 7
			told.add(&o)
		}
	}
	if told.of(&order{Try: "0-x", Share: 8}) != nil {
		t.Error("another share knows it, too")
	}
	got := told.of(&order{Try: "0-x", Share: 7})
	if len(got.skip) != 5 || got.skip[3] || got.now != time.Minute {
		t.Errorf("it leaves out %v, at %v", got.skip, got.now)
	}
	if b := got.begun(); fmt.Sprint(b) != "[{4 [{0 0s 1ns {answer 0 0}} {1 1ns 2ns {answer 1 0}}]} {8 [{0 0s -1ns { 0}}]}]" {
		t.Errorf("it goes on with %v", b)
	}
	if n := len(first.said) + len(second.said); n != 0 {
		t.Errorf("%d answers are still kept", n)
	}
}

// What is done of a long level goes in pieces that NATS takes.
func TestPastInPieces(t *testing.T) {
	c := &Coordinator{Options: Options{OnLoss: "reassign"}}
	l := &levelRun{task: &run.Task{}}
	s := c.newShare(l, 0, 1, &member{clock: clock{same: true}})
	for i := range uint64(300_000) {
		s.done = append(s.done, 1<<60+i)
	}
	for i := range 40 {
		s.sees(t, uint64(i), 0, 2, false)
		s.half[uint64(i)].Over[0].Answer.Text = strings.Repeat("x", 30_000)
	}
	sealer, agent := pair(t)
	var told recalls
	pieces := l.past(0, time.Minute)
	for _, o := range pieces {
		if n := len(sealer.mustSeal(t, agent, o)); n > 1<<20 {
			t.Errorf("an order of %d bytes", n)
		}
		told.add(&o)
	}
	got := told.of(&order{})
	if len(got.skip) != 300_040 || len(got.begun()) != 40 || len(pieces) < 30 {
		t.Errorf("%d sessions are left out, %d go on, in %d pieces", len(got.skip), len(got.begun()), len(pieces))
	}
}

// A reader is advised to use what was not used yet.
func TestAdviceOnLoss(t *testing.T) {
	if p := plan.Default(); p.OnLoss != plan.Reassign {
		t.Errorf("by default, the share of a lost agent is treated by %q", p.OnLoss)
	}
	for how, want := range map[string]bool{"": true, "reassign": false} {
		c, l := &Coordinator{Options: Options{OnLoss: how}}, &levelRun{task: &run.Task{}}
		s := c.newShare(l, 0, 1, &member{})
		s.lost = "its process died"
		r := s.reasons()
		if len(r) != 1 || strings.Contains(r[0].Text, "--on-loss reassign") != want {
			t.Errorf("with --on-loss %q it says %v", how, r)
		}
	}
}

// JetStream may take a message and not the one before. The agent sends both again, and
// all is there once. What is missing behind its last words never comes.
func TestMessageBeforeIsMissing(t *testing.T) {
	var all []byte
	var ends []int
	for i := range 3 {
		var err error
		all, err = (&spool{}).append(all, record(i))
		must(t, err)
		ends = append(ends, len(all))
	}
	var got []uint64
	sink := sinkFunc(func(r *tacho.Record) error { got = append(got, r.Session); return nil })
	s := &share{by: &member{clock: clock{same: true}}, half: map[uint64]*halfDone{}, said: map[place]tacho.Answer{}}
	message := func(from, to int, last string) error {
		h := nats.Header{offsetHeader: []string{strconv.Itoa(from)}}
		if last != "" {
			h.Set(endHeader, "1")
			return s.take(h, []byte(last), sink)
		}
		return s.take(h, all[from:to], sink)
	}
	must(t, message(0, ends[0], ""))
	must(t, message(ends[1], ends[2], ""))
	if err := message(ends[2], ends[2], "{}"); err == nil {
		t.Error("records are missing, and nobody says so")
	}
	must(t, message(ends[0], ends[1], ""))
	must(t, message(ends[1], ends[2], ""))
	must(t, message(ends[2], ends[2], "{}"))
	if !slices.Equal(got, []uint64{0, 1, 2}) || !s.ended {
		t.Errorf("%v, ended %v", got, s.ended)
	}
}

// A reader in whose place another reads passes nothing on any more, though there is room.
func TestOldReaderIsSilent(t *testing.T) {
	in := &intake{messages: make(chan incoming, 64)}
	r := &reader{over: make(chan struct{})}
	r.pass(in, incoming{seq: 1})
	close(r.over)
	for range 50 {
		r.pass(in, incoming{seq: 2})
	}
	if len(in.messages) != 1 {
		t.Errorf("%d messages", len(in.messages))
	}
}

// TestStartIsMonotonic: an agent whose wall clock is set during a level keeps to its
// schedule, because the start of the level is on the monotonic clock.
func TestStartIsMonotonic(t *testing.T) {
	t.Parallel()
	w := &work{start: make(chan time.Time, 1)}
	at := time.Now().Add(time.Minute).Round(0)
	must(t, w.tell(&order{Kind: begin, Start: at.UnixNano()}))
	start := <-w.start
	if !strings.Contains(start.String(), "m=+") {
		t.Errorf("the level starts at %v, which has no monotonic reading", start)
	}
	if start.UnixNano() != at.UnixNano() {
		t.Errorf("the level starts at %v, want %v", start, at)
	}
}
