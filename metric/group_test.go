package metric_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

// talkRecord returns the record of one turn in a session of three turns.
func talkRecord(session uint64, turn int, ttft time.Duration, ok bool) *tacho.Record {
	r := &tacho.Record{
		Session: session, Turn: turn, Turns: 3, Labels: tacho.Labels{{Key: "class", Value: "chat"}},
		Timeline: tacho.NewTimeline(0), Output: 2, Usage: &tacho.Usage{Prompt: 100, Completion: 2, Cached: 40 * turn},
	}
	r.Sent, r.End = 0, time.Second
	r.Events = tacho.Events{{At: ttft}, {At: ttft + time.Millisecond}}
	if !ok {
		r.Failure = &tacho.Failure{Cause: tacho.Reset}
	}
	return r
}

func TestGroupsAndSessions(t *testing.T) {
	var a metric.Accumulator
	add := func(r *tacho.Record) {
		must.Do(t, a.Add(r))
	}
	for turn := range 3 { // session 1 is complete
		add(talkRecord(1, turn, time.Duration(100-10*turn)*time.Millisecond, true))
	}
	add(talkRecord(2, 0, 300*time.Millisecond, true)) // session 2 fails in its second turn
	add(talkRecord(2, 1, 0, false))
	add(talkRecord(3, 0, 200*time.Millisecond, true)) // session 3 was stopped during a pause
	single := talkRecord(4, 0, time.Millisecond, true)
	single.Turns, single.Labels = 0, tacho.Labels{{Key: "class", Value: "batch"}}
	add(single)
	s := a.Summary(metric.DefaultConfig())
	if diff := cmp.Diff(&metric.Sessions{Begun: 3, Completed: 1, CutShort: 2, Unsent: 3, Refused: 1}, s.Sessions); diff != "" {
		t.Error(diff)
	}
	type row struct {
		By, Value                       string
		Requests, Completed, Failed, In int
		Cached                          int
		TTFT                            float64
	}
	var got []row
	for _, g := range s.Groups {
		got = append(got, row{g.By, g.Value, g.Requests, g.Completed, g.Failed, g.Input, g.Cached, g.Dist(metric.TTFT).Stats.Mean})
	}
	want := []row{
		{"class", "batch", 1, 1, 0, 100, 0, 1},
		{"class", "chat", 6, 5, 1, 500, 120, (100 + 90 + 80 + 300 + 200) / 5},
		{"turn", "1", 4, 4, 0, 400, 0, (100 + 300 + 200 + 1) / 4.0},
		{"turn", "2", 2, 1, 1, 100, 40, 90},
		{"turn", "3", 1, 1, 0, 100, 80, 80},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// If all requests are alike, there are no groups.
func TestNoGroups(t *testing.T) {
	var a metric.Accumulator
	for i := range uint64(3) {
		r := talkRecord(i, 0, time.Millisecond, true)
		r.Turns = 0
		must.Do(t, a.Add(r))
	}
	if s := a.Summary(metric.DefaultConfig()); s.Groups != nil || s.Sessions != nil {
		t.Errorf("%+v %+v", s.Groups, s.Sessions)
	}
}
