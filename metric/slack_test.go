package metric

import (
	"testing"
	"time"

	"tacho"
)

// A gap is off by as much as either of its events, and the rest is exact.
func TestSlackOfGaps(t *testing.T) {
	var s, other slack
	at := func(off ...tacho.Slack) *tacho.Record {
		r := new(tacho.Record)
		for i, o := range off {
			r.Events = append(r.Events, tacho.Event{At: time.Duration(i), Slack: o})
		}
		return r
	}
	s.add(at(make([]tacho.Slack, 90)...)) // 89 gaps
	s.add(at(0, 9, 7, 0, 0, 0))           // off by 9, 9, 7, and two exact
	failed := at(200, 200, 200)
	failed.Failure = &tacho.Failure{Cause: tacho.Canceled}
	s.add(failed)
	other.add(at(0, 3, 0, 0, 0, 0, 0)) // off by 3, 3, and four exact
	s.merge(&other)
	const gaps = 100
	for p, want := range map[float64]tacho.Slack{100: 9, 99: 9, 98: 7, 97: 3, 96: 3, 95: 0, 50: 0} {
		if got := s.percentile(p, gaps); got != want {
			t.Errorf("p%v: %d, want %d", p, got, want)
		}
	}
	if got := new(slack).percentile(99, 0); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
}
