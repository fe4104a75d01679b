package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/pace"
)

// talker responds after a delay, with words that repeat the request.
type talker struct {
	takes time.Duration
	fail  string // request at which it fails
}

func (k talker) Prepare(q *tacho.Request) (tacho.Call, error) {
	history := make([]string, 0, len(q.Input.Messages))
	for _, m := range q.Input.Messages {
		history = append(history, m.Content)
	}
	if q.Input.Text != "" {
		history = strings.Split(q.Input.Text, "\n")
	}
	return saying{k, history, q.Turn}, nil
}

type saying struct {
	talker
	history []string
	turn    int
}

func (c saying) Do(ctx context.Context, epoch time.Time, rec *tacho.Record, o tacho.CallOptions) {
	if o.Pass(func() {}) != nil {
		return
	}
	rec.Sent = time.Since(epoch)
	time.Sleep(c.takes)
	rec.End = time.Since(epoch)
	rec.Output, rec.Answer = 7, fmt.Sprintf("a%d", c.turn)
	rec.ID = strings.Join(c.history, "|")
	if c.fail != "" && slices.Contains(c.history, c.fail) {
		rec.Failure = &tacho.Failure{Cause: tacho.Status}
	}
}

type script struct{ turns []tacho.Turn }

func (s script) Session(i uint64) (tacho.Session, error) {
	turns := slices.Clone(s.turns)
	for t := range turns {
		turns[t].Request.Session, turns[t].Request.Turn = i, t
	}
	return tacho.Session{ID: i, Turns: turns}, nil
}

func say(think time.Duration, after []int, messages ...tacho.Message) tacho.Turn {
	return tacho.Turn{Think: think, After: after, Request: tacho.Request{InputTokens: 10, Input: tacho.Input{Messages: messages}}}
}

func user(text string) tacho.Message { return tacho.Message{Role: "user", Content: text} }
func quote(turn int) tacho.Message   { return tacho.Message{Role: "assistant", Answer: turn + 1} }

func conversation(t *testing.T, s script, k talker, sessions int) list {
	t.Helper()
	var got list
	synctest.Test(t, func(t *testing.T) {
		must.Do(t, engine.Run(t.Context(), engine.Stage{
			Arrivals: pace.Stripe(pace.Burst{Count: sessions}.Arrivals(), 0, 1), Source: s, Backend: k,
		}, &got))
	})
	slices.SortFunc(got, func(a, b tacho.Record) int {
		return int(a.Session)*100 + a.Turn - int(b.Session)*100 - b.Turn
	})
	return got
}

// The history of a conversation contains the server's responses. A turn starts when the
// one before has ended and its think time has passed, to the nanosecond.
func TestHistoryIsTheServersOwn(t *testing.T) {
	first := []tacho.Message{user("sys"), user("q0")}
	second := append(slices.Clone(first), quote(0), user("q1"))
	third := append(slices.Clone(second), quote(1), user("q2"))
	for _, plain := range []bool{false, true} {
		s := script{[]tacho.Turn{say(0, nil, first...), say(3*time.Second, nil, second...), say(0, nil, third...)}}
		for i := range s.turns {
			s.turns[i].Request.Input.Plain = plain
		}
		got := conversation(t, s, talker{takes: time.Second}, 2)
		if len(got) != 6 {
			t.Fatalf("%d records", len(got))
		}
		for i, r := range got {
			wantHeard := []string{"sys|q0", "sys|q0|a0|q1", "sys|q0|a0|q1|a1|q2"}[i%3]
			wantDue := []time.Duration{0, 4 * time.Second, 5 * time.Second}[i%3]
			if r.ID != wantHeard || r.Due != wantDue || r.Sent != wantDue || r.Input != 10+7*(i%3) || r.Turns != 3 {
				t.Errorf("turn %d heard %q, due %v, sent %v, %d tokens, %d turns", i%3, r.ID, r.Due, r.Sent, r.Input, r.Turns)
			}
		}
	}
}

// A turn with its own due time waits for it, or for the turn before if that is still
// running.
func TestTurnsKeepTheirOwnTimes(t *testing.T) {
	turns := []tacho.Turn{say(0, nil, user("a")), say(0, nil, user("b")), say(0, nil, user("c"))}
	turns[1].At, turns[2].At = 30*time.Second, 35*time.Second
	got := conversation(t, script{turns}, talker{takes: 10 * time.Second}, 1)
	if got[1].Sent != 30*time.Second || got[2].Sent != 40*time.Second {
		t.Errorf("sent at %v and %v", got[1].Sent, got[2].Sent)
	}
}

// Two sub-agents start together after turn 0, and a last turn joins them.
func TestSubAgentsRunSideBySideAndJoin(t *testing.T) {
	s := script{[]tacho.Turn{
		say(0, nil, user("plan")),
		say(time.Second, []int{0}, user("left"), quote(0)),
		say(2*time.Second, []int{0}, user("right"), quote(0)),
		say(0, []int{1, 2}, user("join"), quote(1), quote(2)),
		say(5*time.Second, []int{}, user("alone")),
	}}
	got := conversation(t, s, talker{takes: 10 * time.Second}, 1)
	var sent []time.Duration
	for _, r := range got {
		sent = append(sent, r.Sent/time.Second)
	}
	if want := []time.Duration{0, 11, 12, 22, 5}; !slices.Equal(sent, want) {
		t.Errorf("sent at %v, want %v", sent, want)
	}
	if got[3].ID != "join|a1|a2" {
		t.Errorf("the join heard %q", got[3].ID)
	}
}

// A failed turn ends the turns that depend on it, and only those.
func TestFailedTurnEndsWhatWaitsForIt(t *testing.T) {
	s := script{[]tacho.Turn{
		say(0, nil, user("plan")),
		say(0, []int{0}, user("left")),
		say(0, []int{0}, user("right")),
		say(0, []int{1}, user("after left")),
		say(0, []int{2}, user("after right")),
		say(0, []int{3, 4}, user("join")),
	}}
	got := conversation(t, s, talker{takes: time.Second, fail: "left"}, 1)
	var turns []int
	for _, r := range got {
		turns = append(turns, r.Turn)
	}
	if want := []int{0, 1, 2, 4}; !slices.Equal(turns, want) {
		t.Errorf("sent turns %v, want %v", turns, want)
	}
}

// The limit applies to requests in flight, however many a session would send at once. No
// request waits forever, and the wait counts from its due time.
func TestLimitHoldsForSubAgents(t *testing.T) {
	turns := []tacho.Turn{say(0, nil, user("plan"))}
	join := []int{}
	for k := range 5 {
		turns = append(turns, say(0, []int{0}, user(fmt.Sprint("agent", k))))
		join = append(join, k+1)
	}
	turns = append(turns, say(0, join, user("join")))
	for name, pacer := range map[string]tacho.Pacer{"closed": pace.Closed{Count: 3}, "open": pace.Constant{Rate: 2, Count: 3}} {
		synctest.Test(t, func(t *testing.T) {
			srv := &server{takes: time.Second}
			recs := run(t, engine.Stage{Arrivals: arrivals(pacer), Limit: 2, Source: script{turns}, Backend: srv})
			waited := 0
			for _, r := range recs {
				if r.Slot > r.Due && r.Sent == r.Slot {
					waited++
				}
			}
			// 3 sessions of 7 requests of one second each, two in flight.
			if n := srv.most.Load(); n != 2 || len(recs) != 21 || waited == 0 {
				t.Errorf("%s: %d at once, %d records, %d waited", name, n, len(recs), waited)
			}
		})
	}
}

// In a closed loop, a user who thinks does not make room for another. In an open loop, a
// session that thinks holds no slot.
func TestThinkingUsersOfALimit(t *testing.T) {
	turns := []tacho.Turn{say(0, nil, user("a")), say(10*time.Second, nil, user("b"))}
	for _, c := range []struct {
		pacer tacho.Pacer
		want  []time.Duration // start times of the sessions
	}{
		{pace.Closed{Count: 3}, []time.Duration{0, 12, 24}},
		{pace.Constant{Rate: 1, Count: 3}, []time.Duration{1, 2, 3}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var began []time.Duration
			for _, r := range run(t, engine.Stage{Arrivals: arrivals(c.pacer), Limit: 1, Source: script{turns}, Backend: &server{takes: time.Second}}) {
				if r.Turn == 0 {
					began = append(began, r.Sent/time.Second)
				}
			}
			if !slices.Equal(began, c.want) {
				t.Errorf("sessions began at %v, want %v", began, c.want)
			}
		})
	}
}

func TestTurnsOutOfOrderAreRefused(t *testing.T) {
	for name, turns := range map[string][]tacho.Turn{
		"turn 1 waits for turn 1":            {say(0, nil, user("a")), say(0, []int{1}, user("b"))},
		"turn 2 quotes the answer of turn 1": {say(0, nil, user("a")), say(0, []int{0}, user("b")), say(0, []int{0}, quote(1))},
	} {
		err := engine.Run(t.Context(), engine.Stage{
			Arrivals: pace.Stripe(pace.Burst{Count: 1}.Arrivals(), 0, 1), Source: script{turns}, Backend: talker{},
		}, &list{})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %q", err, name)
		}
	}
}

// The length of a quoted response is the result of Count, not the server's count.
func TestQuotedAnswersAreCounted(t *testing.T) {
	s := script{[]tacho.Turn{say(0, nil, user("q0")), say(0, nil, user("q0"), quote(0), user("q1"))}}
	var got list
	synctest.Test(t, func(t *testing.T) {
		must.Do(t, engine.Run(t.Context(), engine.Stage{
			Arrivals: pace.Stripe(pace.Burst{Count: 1}.Arrivals(), 0, 1), Source: s, Backend: talker{takes: time.Second},
			Count: func(text string) int { return 100 * len(text) },
		}, &got))
	})
	if len(got) != 2 || got[1].Input != 10+100*len("a0") {
		t.Errorf("%+v", got)
	}
}
