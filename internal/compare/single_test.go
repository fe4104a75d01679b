package compare_test

import (
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// recorded returns a level of n requests sent at fixed intervals, with their first token after ttft(i).
func recorded(n int, every time.Duration, ttft func(i int) time.Duration, change ...func(i int, r *tacho.Record)) outcome.Level {
	var s sink
	for i := range n {
		due := time.Duration(i) * every
		r := tacho.NewRecord(0, &tacho.Request{Session: uint64(i), InputTokens: 10, MaxTokens: 2}, due)
		r.Slot, r.Start, r.Conn, r.Sent, r.Wrote = due, due, due, due, due
		first := due + ttft(i)
		r.Head, r.End, r.Output = first, first+10*time.Millisecond, 2
		r.Events = tacho.Events{{At: first, Tokens: 1}, {At: r.End, Tokens: 1}}
		for _, c := range change {
			c(i, r)
		}
		if err := s.Add(r); err != nil {
			panic(err)
		}
	}
	c := metric.DefaultConfig()
	l := outcome.Level{Setting: outcome.Setting{Prompts: n}}
	if every > 0 {
		l.Rate = 1 / every.Seconds()
	}
	c.RequestRate = l.Rate
	l.Summary = s.Summary(c)
	l.Records = func() iter.Seq2[*tacho.Record, error] {
		return func(yield func(*tacho.Record, error) bool) {
			for _, r := range s.records {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
	return l
}

func constant(d time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return d }
}

// Values that do not vary have no test, and never p = 0. A percentile of a burst that differs by less than bursts of
// one server do is not significant.
func TestZeroSpreadIsNoTest(t *testing.T) {
	for _, every := range []time.Duration{0, 100 * time.Millisecond} {
		a := recorded(600, every, constant(50*time.Millisecond))
		b := recorded(600, every, constant(51*time.Millisecond))
		c := compared(t, "ttft.mean ttft.p99", side("a", []outcome.Level{a}), side("b", []outcome.Level{b}))
		for _, row := range c.Levels[0].Rows {
			d := row.Deltas[1]
			if every == 0 && row.Name == "ttft.p99" && d.Verdict == compare.Same {
				continue
			}
			if d.P != nil || d.Verdict != compare.Untold || d.NoTest == "" {
				t.Errorf("%s of constant values, every %v: %+v", row.Name, every, d)
			}
		}
		same := compared(t, "ttft.mean ttft.p99", side("a", []outcome.Level{a}), side("b", []outcome.Level{a}))
		for _, row := range same.Levels[0].Rows {
			if d := row.Deltas[1]; d.Verdict != compare.Same {
				t.Errorf("%s of the same run: %+v", row.Name, d)
			}
		}
	}
}

// Identical repeats have no test either.
func TestEqualRepeatsAreNoTest(t *testing.T) {
	two := func(v float64) compare.Side {
		return side("x", []outcome.Level{levelOf(4, 0, 9, v)}, []outcome.Level{levelOf(4, 0, 9, v)})
	}
	if d := compared(t, "ttft.mean", two(1), two(2)).Levels[0].Rows[0].Deltas[1]; d.P != nil || d.Verdict != compare.Untold {
		t.Errorf("%+v", d)
	}
}

// A server twice as slow fails a gate on p99 with 50 requests. They do not show that an equal server passes.
func TestGateSeesEnormousDifferences(t *testing.T) {
	vary := func(factor float64) func(int) time.Duration {
		return func(i int) time.Duration { return time.Duration(factor * float64(30+i*37%23) * 1e6) }
	}
	a := recorded(50, 100*time.Millisecond, vary(1))
	for factor, want := range map[float64]compare.State{1.01: compare.NotJudged, 2: compare.Failed, 20: compare.Failed} {
		b := recorded(50, 100*time.Millisecond, vary(factor))
		c := compared(t, "ttft.p99", side("a", []outcome.Level{a}), side("b", []outcome.Level{b}))
		found := c.Judge(conditions(t, "ttft.p99>+5%"), false)
		if len(found) != 1 || found[0].State != want || want == compare.Failed && !strings.Contains(found[0].Text, "all requests") {
			t.Errorf("%g times as slow: %q, want %s", factor, states(found), want)
		}
	}
}

// Warnings about the shape of the load.
func TestWarningsOfShape(t *testing.T) {
	a, b := side("a", []outcome.Level{levelOf(4, 0, 10, 1)}), side("b", []outcome.Level{levelOf(4, 0, 10, 1)})
	x, y := &a.Runs[0].Levels[0].Summary, &b.Runs[0].Levels[0].Summary
	none, half := 0.0, 0.5
	y.Completed, y.Tokens.Input = 30, 3000
	x.Config.RequestRate, y.Config.RequestRate = 4, 4
	x.Config.Burstiness, y.Config.Burstiness = 1, 0.2
	x.Config.SharedShare, y.Config.SharedShare = &none, &half
	x.Dists = append(x.Dists, metric.Dist{Name: "input_tokens", Stats: &metric.Stats{Mean: 100}})
	y.Dists = append(y.Dists, metric.Dist{Name: "input_tokens", Stats: &metric.Stats{Mean: 100, Std: 90}})
	all := strings.Join(compared(t, "ttft.mean", a, b).Warnings, "\n")
	for _, want := range []string{"runs differ in length (10 and 30 requests at request-rate 4)", "burstiness differs (1 and 0.2", "shared prefixes differ (0 % and 50 %", "lengths of prompts vary differently"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in:\n%s", want, all)
		}
	}
}
