package metric_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

// Every planned request is sent, or counts as never sent, whatever the cause. A level without a planned
// number of requests that ended early has no such share.
func TestUnsentCountsEverythingPlanned(t *testing.T) {
	plain := func(sent int, set func(c *metric.Config)) *metric.Summary {
		s := healthy()
		s.Requests, s.Completed, s.Begun = sent, sent, sent
		set(&s.Config)
		return s
	}
	talks := func(requests int, sessions metric.Sessions, set func(c *metric.Config)) *metric.Summary {
		s := plain(requests, set)
		s.Begun, s.Sessions = sessions.Begun, &sessions
		return s
	}
	for _, c := range []struct {
		name    string
		s       *metric.Summary
		planned int     // 0 means unknown
		percent float64 // never sent
		says    string
	}{
		{"all sent", plain(600, func(c *metric.Config) { c.Planned = 600 }), 600, 0, ""},
		{"limited by time", plain(600, func(*metric.Config) {}), 600, 0, ""},
		{"no slot was free", plain(570, func(c *metric.Config) { c.Planned, c.Unsent = 600, 30 }), 600, 5, "30 of 600 due requests were never sent (5 %)"},
		{"an agent was silent", plain(570, func(c *metric.Config) {
			c.Planned, c.Unsent, c.Agents = 600, 30, []metric.Agent{{Missing: "no message for 10s", Continued: true}}
		}), 600, 5, "30 of 600 due requests were never sent, as far as is known (5 %)"},
		{"the user ended it", plain(1, func(c *metric.Config) { c.Planned, c.EndedEarlyS = 150, 1.3 }), 150, 99.33, "the user ended this level after 1.3 s, and 149 of 150 planned requests were never sent (99.3 %)"},
		{"the user ended it after the last request", plain(150, func(c *metric.Config) { c.Planned, c.EndedEarlyS = 150, 29 }), 150, 0, "the user ended this level after 29 s: run"},
		{"the user ended an overload", plain(300, func(c *metric.Config) { c.Planned, c.Unsent, c.EndedEarlyS = 600, 100, 3 }), 600, 50, "200 of 600 planned requests were never sent"},
		{"the user ended a closed loop limited by time", plain(300, func(c *metric.Config) { c.EndedEarlyS = 3 }), 0, 0, "the user ended this level after 3 s: run"},
		{"interrupted", plain(300, func(c *metric.Config) { c.Planned, c.Interrupted = 600, true }), 600, 50, "before its plan was complete, and 300 of 600 planned requests were never sent (50 %)"},
		{"interrupted, limited by time", plain(300, func(c *metric.Config) { c.Interrupted = true }), 0, 0, "before its plan was complete: let"},
		{"refused turns", talks(59, metric.Sessions{Begun: 20, CutShort: 10, Unsent: 21, Refused: 21}, func(c *metric.Config) { c.Planned = 20 }), 80, 26.25, "21 of 80 planned turns were never sent (26.3 %)"},
		{"turns after the end of the time", talks(59, metric.Sessions{Begun: 20, CutShort: 10, Unsent: 21}, func(*metric.Config) {}), 59, 0, ""},
		{"conversations that never began", talks(40, metric.Sessions{Begun: 10, Completed: 10}, func(c *metric.Config) { c.Planned, c.Unsent = 20, 10 }), 80, 50, "40 of 80 due requests"},
		{"conversations that the user ended", talks(38, metric.Sessions{Begun: 10, Completed: 9, Unsent: 2}, func(c *metric.Config) { c.Planned, c.EndedEarlyS = 20, 9 }), 80, 52.5, "42 of 80 planned requests"},
		{"conversations that were interrupted", talks(38, metric.Sessions{Begun: 10, Unsent: 2, Refused: 2}, func(c *metric.Config) { c.Planned, c.Interrupted = 20, true }), 80, 52.5, "42 of 80 planned requests"},
		{"another tool", func() *metric.Summary {
			s := plain(600, func(*metric.Config) {})
			s.Verdict.Severity = metric.Unjudged
			return s
		}(), 0, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := c.s.Unsent()
			q := must.Get(metric.ParseQuantity("unsent"))(t)
			percent, known := q.Of(c.s)
			if u.Unknown == (c.planned > 0) || !u.Unknown && u.Planned != c.planned || known == u.Unknown || math.Abs(percent-c.percent) > 0.01 {
				t.Errorf("%+v, %v %%, want %d planned, %v %%", u, percent, c.planned, c.percent)
			}
			var said []string
			for _, r := range metric.JudgeBy(c.s, []string{"interrupted", "ended-early", "unsent", "turns"}).Reasons {
				said = append(said, r.Text)
			}
			if text := strings.Join(said, "; "); !strings.Contains(text, c.says) || c.says == "" && text != "" {
				t.Errorf("%q, want %q", text, c.says)
			}
		})
	}
}
