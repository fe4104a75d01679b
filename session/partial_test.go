package session_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/session"
)

// asks returns a turn waiting for other turns and quoting their answers.
func asks(n int, think, at time.Duration, after []int, quotes ...int) tacho.Turn {
	t := tacho.Turn{Think: think, At: at, After: after, Request: tacho.Request{Turn: n, InputTokens: 10}}
	for _, q := range quotes {
		t.Request.Input.Messages = append(t.Request.Input.Messages, tacho.Message{Role: "assistant", Answer: q + 1})
	}
	return t
}

// The remaining session continues as the original would have: the same turns, after the same pauses, with the same
// answers.
func TestRemaining(t *testing.T) {
	const s = time.Second
	line := tacho.Session{ID: 7, Turns: []tacho.Turn{asks(0, 0, 0, nil), asks(1, s, 0, nil, 0), asks(2, 2*s, 0, nil, 0, 1)}}
	// Turns 1 and 2 run in parallel after turn 0, turn 3 joins them, and turn 4 starts with the session.
	joined := tacho.Session{ID: 8, Turns: []tacho.Turn{
		asks(0, 0, 0, nil), asks(1, s, 0, []int{0}, 0), asks(2, 3*s, 0, []int{0}, 0), asks(3, s, 20*s, []int{1, 2}, 1, 2), asks(4, 9*s, 0, []int{}),
	}}
	answered := func(n int, due, end time.Duration, text string) session.FinishedTurn {
		return session.FinishedTurn{Turn: n, Due: due, End: end, Answer: tacho.Answer{Text: text, Tokens: 3}}
	}
	type left struct {
		Turn, Input int
		After       []int
		Think, At   time.Duration
		Said        []string // known answers; a number refers to an unfinished turn
	}
	for name, c := range map[string]struct {
		of   tacho.Session
		over []session.FinishedTurn
		now  time.Duration
		due  time.Duration
		want []left
	}{
		"first turn": {line, []session.FinishedTurn{answered(0, 5*s, 6*s, "a")}, 60 * s, 7 * s, []left{
			{1, 13, []int{}, 0, 0, []string{"a"}}, {2, 13, []int{0}, 2 * s, 0, []string{"a", "1"}},
		}},
		"during a pause": {line, []session.FinishedTurn{answered(0, 5*s, 6*s, "a"), answered(1, 7*s, 8*s, "b")}, 9 * s, 9 * s, []left{{2, 16, []int{}, 0, s, []string{"a", "b"}}}},
		"failed":         {line, []session.FinishedTurn{answered(0, 5*s, 6*s, "a"), {Turn: 1, Due: 7 * s, End: tacho.Never}}, 60 * s, 60 * s, nil},
		"one of two": {joined, []session.FinishedTurn{answered(0, 5*s, 6*s, "a"), answered(2, 9*s, 10*s, "c")}, 60 * s, 7 * s, []left{
			{1, 13, []int{}, 0, 0, []string{"a"}}, {3, 13, []int{0}, s, 18 * s, []string{"1", "c"}}, {4, 10, []int{}, 0, 2 * s, nil},
		}},
		"one of two failed": {joined, []session.FinishedTurn{answered(0, 5*s, 6*s, "a"), {Turn: 2, Due: 9 * s, End: tacho.Never}}, 60 * s, 7 * s, []left{
			{1, 13, []int{}, 0, 0, []string{"a"}}, {4, 10, []int{}, 0, 2 * s, nil},
		}},
		"no such turn": {line, []session.FinishedTurn{answered(9, 0, 0, "x"), answered(-1, 0, 0, "x")}, 3 * s, 3 * s, []left{
			{0, 10, []int{}, 0, 0, nil}, {1, 10, []int{0}, s, 0, []string{"1"}}, {2, 10, []int{1}, 2 * s, 0, []string{"1", "2"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := session.Partial{ID: c.of.ID, Finished: c.over}
			rest, due := b.Remaining(c.of, c.now)
			var got []left
			for _, u := range rest.Turns {
				l := left{u.Request.Turn, u.Request.InputTokens, u.After, u.Think, u.At, nil}
				for _, m := range u.Request.Input.Messages {
					text := m.Content
					if m.Answer > 0 {
						text = string(rune('0' + m.Answer))
					}
					l.Said = append(l.Said, text)
				}
				got = append(got, l)
			}
			if d := cmp.Diff(c.want, got); d != "" || due != c.due || rest.ID != c.of.ID {
				t.Errorf("due %v, want %v; -want +got\n%s", due, c.due, d)
			}
			if len(rest.Turns) > 0 {
				if _, err := session.New(&rest); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
