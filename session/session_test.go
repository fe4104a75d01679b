package session_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/session"
)

const second = time.Second

func turn(think time.Duration, after []int, at time.Duration) tacho.Turn {
	return tacho.Turn{Think: think, After: after, At: at}
}

// drive runs a session on a virtual clock. Each turn lasts takes; turns in fail fail. drive returns the due time of
// each turn.
func drive(t *testing.T, turns []tacho.Turn, begun, takes time.Duration, fail ...int) map[int]time.Duration {
	t.Helper()
	s := must.Get(session.New(&tacho.Session{Turns: turns}))(t)
	got := map[int]time.Duration{}
	open := s.Start(0, begun)
	for len(open) > 0 {
		slices.SortStableFunc(open, func(a, b session.Due) int { return cmp.Compare(a.At, b.At) })
		next := open[0]
		open = open[1:]
		got[next.Turn] = next.At
		if !slices.Contains(fail, next.Turn) {
			open = append(open, s.Ended(next.Turn, max(next.At, begun)+takes, tacho.Answer{})...)
		}
	}
	return got
}

func TestDue(t *testing.T) {
	for name, tc := range map[string]struct {
		turns []tacho.Turn
		begun time.Duration
		fail  []int
		want  map[int]time.Duration
	}{
		"one after the other, with pauses": {
			turns: []tacho.Turn{turn(0, nil, 0), turn(2*second, nil, 0), turn(3*second, nil, 0)},
			want:  map[int]time.Duration{0: 0, 1: 3 * second, 2: 7 * second},
		},
		"a late start moves all that follows": {
			turns: []tacho.Turn{turn(0, nil, 0), turn(2*second, nil, 0)}, begun: 10 * second,
			want: map[int]time.Duration{0: 0, 1: 13 * second},
		},
		"side by side and joined by the slower": {
			turns: []tacho.Turn{turn(0, nil, 0), turn(0, []int{0}, 0), turn(5*second, []int{0}, 0), turn(0, []int{1, 2}, 0)},
			want:  map[int]time.Duration{0: 0, 1: second, 2: 6 * second, 3: 7 * second},
		},
		"waits for no turn": {
			turns: []tacho.Turn{turn(0, nil, 0), turn(4*second, []int{}, 0)}, begun: 10 * second,
			want: map[int]time.Duration{0: 0, 1: 14 * second},
		},
		"a time of its own": {
			turns: []tacho.Turn{turn(0, nil, 0), turn(0, nil, 9*second), turn(0, nil, second)},
			want:  map[int]time.Duration{0: 0, 1: 9 * second, 2: 10 * second},
		},
		"a turn waiting for a failed turn is never due": {
			turns: []tacho.Turn{turn(0, nil, 0), turn(0, []int{0}, 0), turn(0, []int{0}, 0), turn(0, []int{1, 2}, 0)}, fail: []int{2},
			want: map[int]time.Duration{0: 0, 1: second, 2: second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := drive(t, tc.turns, tc.begun, second, tc.fail...)
			if len(got) != len(tc.want) {
				t.Errorf("due: %v, want %v", got, tc.want)
			}
			for i, at := range tc.want {
				if got[i] != at {
					t.Errorf("turn %d due at %v, want %v", i, got[i], at)
				}
			}
		})
	}
}

func TestOrder(t *testing.T) {
	quoting := turn(0, []int{}, 0)
	quoting.Request.Input.Messages = []tacho.Message{{Role: "assistant", Answer: 1}}
	for want, turns := range map[string][]tacho.Turn{
		"which must come before it":  {turn(0, nil, 0), turn(0, []int{1}, 0)},
		"without waiting for it":     {turn(0, nil, 0), quoting},
		"turn 1 waits for turn -1, ": {turn(0, nil, 0), turn(0, []int{-1}, 0)},
	} {
		if _, err := session.New(&tacho.Session{Turns: turns}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestRequestQuotesAnswers(t *testing.T) {
	last := turn(0, nil, 0)
	last.Request = tacho.Request{InputTokens: 5, Input: tacho.Input{Messages: []tacho.Message{{Role: "assistant", Answer: 1}, {Role: "user", Content: "go on"}}}}
	s := must.Get(session.New(&tacho.Session{Turns: []tacho.Turn{turn(0, nil, 0), last}}))(t)
	s.Start(0, 0)
	s.Ended(0, second, tacho.Answer{Text: "hello", Tokens: 3})
	q := s.Request(1)
	if q.Input.Messages[0].Content != "hello" || q.InputTokens != 8 {
		t.Errorf("asks %v, %d tokens", q.Input.Messages, q.InputTokens)
	}
}
