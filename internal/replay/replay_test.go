package replay_test

import (
	"errors"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/replay"
)

// talks is a workload of sessions with three turns: turns 1 and 2 wait for turn 0, and turn 2 quotes its answer.
type talks struct{}

func (talks) Session(i uint64) (tacho.Session, error) {
	if i >= 10 {
		return tacho.Session{}, io.EOF
	}
	s := tacho.Session{ID: i}
	for t := range 3 {
		turn := tacho.Turn{Think: time.Second, Request: tacho.Request{Session: i, Turn: t, InputTokens: 100, MaxTokens: 10 + int(i)}}
		if t > 0 {
			turn.After = []int{0}
		}
		if t == 2 {
			turn.Request.Input.Messages = []tacho.Message{{Answer: 1}}
		}
		s.Turns = append(s.Turns, turn)
	}
	return s, nil
}

func kept(list ...tacho.Record) iter.Seq2[*tacho.Record, error] {
	return func(yield func(*tacho.Record, error) bool) {
		for i := range list {
			if !yield(&list[i], nil) {
				return
			}
		}
	}
}

func record(session uint64, turn, dueS, slotS int) tacho.Record {
	r := tacho.Record{Session: session, Turn: turn, Input: 100, Asked: 10 + int(session), Timeline: tacho.NewTimeline(time.Duration(dueS) * time.Second)}
	r.Slot = time.Duration(slotS) * time.Second
	return r
}

// A replay sends the same requests at the same times: sessions in the order of their send times, turns no earlier
// than before, and no request that was never sent.
func TestReplay(t *testing.T) {
	probe := record(0, 0, 0, 0)
	probe.Probe = true
	records := kept(record(5, 0, 7, 8), record(2, 0, 3, 4), record(2, 2, 9, 11), record(1, 0, 3, 3), probe)
	for limited, want := range map[bool][]time.Duration{
		false: {3 * time.Second, 3 * time.Second, 7 * time.Second},
		true:  {3 * time.Second, 4 * time.Second, 8 * time.Second},
	} {
		s := must.Get(replay.New(records, limited))(t)
		var numbers []uint64
		for n := range s.Numbered() {
			numbers = append(numbers, n)
		}
		if got := slices.Collect(s.Arrivals()); !slices.Equal(got, want) || !slices.Equal(numbers, []uint64{1, 2, 5}) || s.Len() != 3 {
			t.Errorf("limited %v: sessions %v at %v, want %v", limited, numbers, got, want)
		}
	}
	s := must.Get(replay.New(records, false))(t)
	got, err := s.WithPrompts(talks{}).Session(2)
	if err != nil || len(got.Turns) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	last := got.Turns[1]
	if last.At != 6*time.Second || last.Think != 0 || !reflect.DeepEqual(last.After, []int{0}) || last.Request.Turn != 2 || last.Request.Input.Messages[0].Answer != 1 {
		t.Errorf("the last turn: %+v", last)
	}
	if _, err := s.WithPrompts(talks{}).Session(3); !errors.Is(err, io.EOF) {
		t.Errorf("a session that was not sent: %v", err)
	}
	bare, err := s.Session(2)
	if err != nil || len(bare.Turns) != 2 || bare.Turns[1].Request.InputTokens != 100 || bare.Turns[1].Request.MaxTokens != 12 || bare.Turns[1].At != 6*time.Second {
		t.Errorf("without prompts: %+v, %v", bare, err)
	}
}

// Incomplete or changed runs are rejected.
func TestReplayRejected(t *testing.T) {
	other := record(4, 0, 1, 1)
	other.Asked = 99
	longer := record(4, 0, 1, 1)
	longer.Input = 200
	for want, records := range map[string]iter.Seq2[*tacho.Record, error]{
		"it sent no requests":              kept(),
		"the first request of session 4":   kept(record(4, 1, 1, 1)),
		"asked for 99, and now has":        kept(other),
		"had 200 prompt tokens":            kept(longer),
		"is no longer in the data":         kept(record(12, 0, 1, 1)),
		"had 4 turns or more, and now has": kept(record(4, 0, 1, 1), record(4, 3, 2, 2)),
	} {
		s, err := replay.New(records, false)
		if err == nil {
			for n := range s.Numbered() {
				_, err = s.WithPrompts(talks{}).Session(n)
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
