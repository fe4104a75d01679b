package workload_test

import (
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/token"
	"github.com/tacho-bench/tacho/workload"
)

// TestSharing checks that the measured share of known prompts is a tight upper bound.
func TestSharing(t *testing.T) {
	fixed := workload.Fixed
	for _, c := range []struct {
		name      string
		o         workload.Options
		low, high float64 // bounds of the share
	}{
		{"nothing in common", workload.Options{Input: fixed(400)}, 0, 0.001},
		{"a common prefix", workload.Options{Input: fixed(200), Prefix: 200}, 0.48, 0.75},
		{"one of many prefixes", workload.Options{Input: fixed(200), Prefix: 200, Prefixes: 50}, 0.24, 0.45},
	} {
		for _, ids := range []bool{true, false} {
			o := c.o
			o.Seed, o.Count, o.IDs, o.Output, o.Vocab, o.Counter = 1, 100, ids, fixed(1), 30_000, token.Estimate{}
			kind := must.Get(workload.Find("random"))(t)
			work := must.Get(kind.New(t.Context(), o))(t)
			var s workload.Sharing
			work = s.Watch(work)
			for i := range uint64(100) {
				must.Get(work.Session(i))(t)
			}
			if got := s.Share(); got == nil || *got < c.low || *got > c.high {
				t.Errorf("%s, ids %v: %v, want %v to %v", c.name, ids, *got, c.low, c.high)
			}
		}
	}
}

// script is a workload of given prompts. Negative indexes are warm-up prompts.
type script map[int]tacho.Input

func (s script) Session(i uint64) (tacho.Session, error) {
	return tacho.Session{Turns: []tacho.Turn{
		{Request: tacho.Request{InputTokens: 10, Input: s[int(i)]}}, {Request: tacho.Request{Turn: 1, InputTokens: 1000, Input: s[int(i)]}},
	}}, nil
}

func (s script) Warmup(i uint64) (tacho.Session, error) { return s.Session(-i - 1) }
func (script) Notes() []string                          { return nil }

func TestSharingOfRepeatsTurnsAndWarmUps(t *testing.T) {
	ask := func(text string) tacho.Input {
		return tacho.Input{Messages: []tacho.Message{{Role: "user", Content: text}}}
	}
	var s workload.Sharing
	if s.Share() != nil {
		t.Error("something is known of no prompt")
	}
	work := s.Watch(script{
		-1: ask("a question that is asked before the load begins"), 0: ask("a question that is asked before the load begins"),
		1: ask("one that is not, though another warmed up"), 2: {Audio: &tacho.Audio{}},
	})
	must.Get(work.Warmup(0))(t)
	for i := range uint64(3) {
		must.Get(work.Session(i))(t)
	}
	if got := s.Share(); got == nil || *got != 0.5 {
		t.Errorf("got %v, want half: one prompt of two was sent before", *got)
	}
}
