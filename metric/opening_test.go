package metric

import (
	"iter"
	"math"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
)

// announced returns an answer of n events from 50 ms on, 20 ms apart, with empty events at the given times in
// milliseconds, and with a count of the server, or without if it is 0.
func announced(n, counted int, empty ...float64) *tacho.Record {
	r := &tacho.Record{Timeline: tacho.NewTimeline(0), Output: max(counted, n)}
	r.Sent = 0
	for _, at := range empty {
		r.Opening = append(r.Opening, tacho.Event{At: time.Duration(at * 1e6)})
	}
	for i := range n {
		r.Events = append(r.Events, tacho.Event{At: time.Duration(50+20*i) * time.Millisecond})
	}
	if r.End = r.Last(); counted > 0 {
		r.Usage = &tacho.Usage{Completion: counted}
	}
	return r
}

func times(n int, r func() *tacho.Record) (out []*tacho.Record) {
	for range n {
		out = append(out, r())
	}
	return out
}

// The first token is the first text, whatever comes before it and whatever one answer's count is. If the count leaves
// room for an earlier token, the possible error decides the verdict on TTFT and TPOT.
func TestFirstToken(t *testing.T) {
	plain := func() *tacho.Record { return announced(11, 11) }
	one := func(r func() *tacho.Record, of int, other func() *tacho.Record) []*tacho.Record {
		return append(times(of-1, other), r())
	}
	for name, c := range map[string]struct {
		records  []*tacho.Record
		answers  int
		off      float64 // milliseconds
		severity Severity
	}{
		"nothing before the text":      {times(30, plain), 0, 0, Valid},
		"announced":                    {times(30, func() *tacho.Record { return announced(11, 11, 1) }), 0, 0, Valid},
		"announced, fewer counted":     {times(30, func() *tacho.Record { return announced(11, 9, 1) }), 0, 0, Valid},
		"announced, and a pair":        {times(30, func() *tacho.Record { return announced(11, 12, 1) }), 30, 49, Degraded},
		"announced, a count of 1e18":   {times(30, func() *tacho.Record { return announced(11, 1e18, 1) }), 30, 49, Degraded},
		"announced, no count":          {times(30, func() *tacho.Record { return announced(11, 0, 1) }), 30, 49, Degraded},
		"heartbeats":                   {times(30, func() *tacho.Record { return announced(11, 12, 20, 40) }), 30, 30, Degraded},
		"one of 200, half a character": {one(func() *tacho.Record { return announced(11, 12, 30) }, 200, plain), 1, 20, Valid},
		"one of 10, half a character":  {one(func() *tacho.Record { return announced(11, 12, 30) }, 10, plain), 1, 20, Degraded},
		"one of 30, hardly earlier":    {one(func() *tacho.Record { return announced(11, 12, 49.5) }, 30, plain), 1, 0.5, Note},
		"from the future":              {times(30, func() *tacho.Record { return announced(11, 12, 9000) }), 0, 0, Valid},
		"one token":                    {times(30, func() *tacho.Record { return announced(1, 2, 1) }), 30, 49, Degraded},
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range inEveryOrder(t, c.records, DefaultConfig()) {
				if ttft := s.Dist(TTFT).Stats; ttft.Min != 50 || ttft.Max != 50 {
					t.Errorf("TTFT from %v to %v ms, want 50", ttft.Min, ttft.Max)
				}
				got := Opening{}
				if s.Opening != nil {
					got = *s.Opening
				}
				if got.Answers != c.answers || got.OffMillis != c.off {
					t.Errorf("%d answers in doubt by %v ms, want %d by %v", got.Answers, got.OffMillis, c.answers, c.off)
				}
				reason, _ := openingRule.ask(&s)
				if c.severity == Valid {
					c.severity = ""
				}
				if reason.Severity != c.severity {
					t.Errorf("%q, an error of %v: want %q", reason.Text, got.OffShare, c.severity)
				}
			}
		})
	}
}

// The possible error covers TTFT and TPOT, also if most answers are slower.
func TestFirstTokenShare(t *testing.T) {
	var a Accumulator
	for i := range 400 {
		r := announced(11, 12, 10)
		if i%2 == 0 { // slow answers without a doubt raise the p99
			r = announced(11, 11)
			for e := range r.Arrivals() {
				e.At += 10 * time.Second
			}
		}
		must.Do(t, a.Add(r))
	}
	s := a.Summary(DefaultConfig())
	if want := 40 / 50.0; s.Opening == nil || math.Abs(s.Opening.OffShare-want) > 1 || s.Opening.OffShare < 0.02 {
		t.Errorf("%+v, want a share up to %v", s.Opening, want)
	}
}

// vLLM's own client takes the first event as the first token.
func TestFirstTokenOfVLLM(t *testing.T) {
	records := func(yield func(*tacho.Record, error) bool) {
		for range 3 {
			if !yield(announced(11, 12, 10), nil) {
				return
			}
		}
	}
	for name, want := range map[string]float64{"tacho": 50, "vllm": 10} {
		d := must.Get(DialectNamed(name))(t)
		sum := must.Get(d.Summarize(iter.Seq2[*tacho.Record, error](records), nil))(t)
		if got := sum.Dists[0].Stats.Mean; got != want {
			t.Errorf("%s: TTFT %v ms, want %v", name, got, want)
		}
	}
}

// An event without text is a token if the counts of all answers say so. The count of one answer may be equal by
// coincidence.
func TestNoText(t *testing.T) {
	answer := func(counted, empty, ids int) func() *tacho.Record {
		return func() *tacho.Record {
			r := announced(11, counted)
			r.Output, r.OutputFrom = counted, tacho.FromUsage
			if counted == 0 {
				r.Output, r.OutputFrom = 11, tacho.FromEvents
			}
			for i := range empty {
				r.Events[2*i+1].Kind = tacho.NoText
			}
			for i := range r.Events {
				r.Events[i].Tokens = int16(ids)
			}
			return r
		}
	}
	for name, c := range map[string]struct {
		records []*tacho.Record
		want    bool
	}{
		"no such event":            {times(200, answer(12, 0, 0)), false},
		"half characters":          {times(200, answer(11, 2, 0)), false},
		"one end that is no event": {append(times(199, answer(11, 2, 0)), answer(12, 2, 0)()), false},
		"in one of 200":            {append(times(199, answer(11, 0, 0)), answer(12, 1, 0)()), false},
		"pairs in some":            {append(times(190, answer(11, 2, 0)), times(10, answer(12, 2, 0))...), true},
		"heartbeats and pairs":     {times(200, answer(15, 2, 0)), true},
		"heartbeats":               {times(200, answer(9, 2, 0)), true},
		"heartbeats before, a coincidence": {times(200, func() *tacho.Record {
			r := answer(11, 2, 0)()
			r.Opening = tacho.Events{{At: 20 * time.Millisecond}}
			return r
		}), true},
		"no count":                   {times(200, answer(0, 2, 0)), true},
		"pairs with their counts":    {times(200, answer(22, 0, 2)), false},
		"half characters and counts": {times(200, answer(22, 2, 2)), false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range inEveryOrder(t, c.records, DefaultConfig()) {
				if reason, found := noTextRule.ask(&s); found != c.want {
					t.Errorf("%+v: %+v, want %v", s.Tokens.NoText, reason, c.want)
				}
			}
		})
	}
}
