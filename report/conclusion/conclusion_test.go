package conclusion_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
)

// A tried is a level of a closed loop.
type tried struct {
	users   int
	served  float64 // requests/s
	ttft    float64 // p99 and maximum, in ms
	n       int     // requests
	good    float64 // share of requests within the SLO; 0 if there is no SLO
	verdict metric.Severity
}

func (l tried) level() outcome.Level {
	s := metric.Summary{
		Counts:     metric.Counts{Requests: l.n, Completed: l.n, DurationS: float64(l.n) / l.served},
		Throughput: &metric.Throughput{RequestsPerS: l.served, OutputTokensPerS: 20 * l.served},
		Verdict:    metric.Verdict{Severity: l.verdict},
	}
	if l.verdict == metric.Invalid {
		s.Verdict.Reasons = []metric.Reason{{Code: "x", Severity: metric.Invalid, Text: "the client was not scheduled: give it more CPU"}}
	}
	if l.good > 0 {
		s.Config.Goodput = []metric.SLO{{Metric: "ttft", LimitMillis: 500}}
		s.Throughput.GoodPerS = new(l.good * l.served)
	}
	for _, m := range metric.All {
		s.Dists = append(s.Dists, metric.Dist{Name: m.Name})
		if m == metric.TTFT {
			s.Dists[len(s.Dists)-1].N = l.n
			s.Dists[len(s.Dists)-1].Stats = &metric.Stats{Median: l.ttft / 2, Max: l.ttft, Percentiles: []metric.Percentile{{P: 50, Value: l.ttft / 2}, {P: 90, Value: l.ttft}, {P: 99, Value: l.ttft}}}
		}
	}
	s.Config.MaxConcurrency = l.users
	out := outcome.Level{Summary: s}
	out.Name = fmt.Sprintf("--max-concurrency %d", l.users)
	return out
}

func TestConclusions(t *testing.T) {
	const ok, bad, poor = metric.Valid, metric.Invalid, metric.Degraded
	for name, c := range map[string]struct {
		levels  []tried
		verdict metric.Severity
		held    int // index of the highest level within the goal; -1 if none
		want    string
	}{
		"all INVALID": {
			[]tried{{1, 10, 50, 200, 0, bad}, {2, 20, 50, 200, 0, bad}},
			bad, -1,
			"INVALID: nothing can be concluded, because the client was not scheduled: give it more CPU.",
		},
		"one INVALID": {
			[]tried{{1, 10, 50, 200, 1, ok}, {2, 20, 90, 200, 1, bad}, {4, 40, 100, 200, 1, ok}, {8, 41, 900, 200, 0.2, ok}},
			ok, 2,
			"Holds TTFT < 500 ms for 99 % of the requests up to concurrency 4 (40 req/s, 800 tok/s); above that more load adds 2 % throughput, and TTFT p99 is 900 ms at concurrency 8. Excluded because INVALID: concurrency 2.",
		},
		"the limit INVALID": {
			[]tried{{1, 10, 50, 200, 1, ok}, {2, 20, 90, 200, 1, ok}, {4, 40, 100, 200, 1, bad}},
			ok, 1,
			"Holds TTFT < 500 ms for 99 % of the requests up to concurrency 2 (20 req/s, 400 tok/s), the highest load with a usable result; the limit may be higher. Excluded because INVALID: concurrency 4.",
		},
		"DEGRADED": {
			[]tried{{1, 10, 50, 200, 0, ok}, {2, 20, 60, 200, 0, poor}, {4, 20, 200, 200, 0, ok}},
			poor, 1,
			"DEGRADED: Gains throughput up to concurrency 2 (20 req/s, 400 tok/s, TTFT p99 60 ms); above that more load adds no throughput, and TTFT p99 is 200 ms at concurrency 4.",
		},
		"few requests": {
			[]tried{{1, 10, 50, 4, 0, ok}, {2, 20, 60, 8, 0, ok}},
			ok, -1,
			"8 requests at concurrency 2 took 400 ms, TTFT max 60 ms. Too few requests for a rate.",
		},
		"few requests, SLO": {
			[]tried{{1, 10, 50, 40, 1, ok}, {2, 20, 60, 40, 1, ok}},
			ok, 1,
			"Holds TTFT < 500 ms for each of 40 requests up to concurrency 2 (20 req/s, 400 tok/s), the highest load tried; the limit may be higher.",
		},
		"misses": {
			[]tried{{1, 10, 700, 200, 0.1, ok}, {2, 20, 900, 200, 0.1, ok}},
			ok, -1,
			"Misses TTFT < 500 ms for 99 % of the requests even at concurrency 1; TTFT p99 is 700 ms at concurrency 1.",
		},
		"one level":           {[]tried{{1, 10, 50, 200, 0, ok}}, ok, -1, "Serves 10 requests/s, 200 output tokens/s, TTFT p50 25 ms and p99 50 ms."},
		"one level, few":      {[]tried{{1, 10, 50, 20, 0, ok}}, ok, -1, "Serves 10 requests/s, 200 output tokens/s, TTFT p50 25 ms and max 50 ms."},
		"one level, DEGRADED": {[]tried{{1, 10, 50, 200, 0, poor}}, poor, -1, "DEGRADED: Serves 10 requests/s, 200 output tokens/s, TTFT p50 25 ms and p99 50 ms."},
		"nothing":             {nil, bad, -1, "Nothing was measured."},
	} {
		t.Run(name, func(t *testing.T) {
			var levels []outcome.Level
			for _, l := range c.levels {
				levels = append(levels, l.level())
			}
			got := conclusion.Of(&outcome.Run{Levels: levels})
			held := -1
			if got.Held != nil {
				held = got.Held.Level
			}
			if text := strings.Join(got.Text, " "); text != c.want || got.Verdict != c.verdict || held != c.held {
				t.Errorf("%s, held by level %d: %s\nwant %s, %d: %s", got.Verdict, held, text, c.verdict, c.held, c.want)
			}
		})
	}
}

// The conclusion and the verdict give the same failure rate: neither counts canceled
// requests.
func TestFailuresHaveOneDenominator(t *testing.T) {
	s := metric.Summary{Counts: metric.Counts{Requests: 171, Completed: 147, Failed: 13, Canceled: 11, DurationS: 10}, Throughput: &metric.Throughput{RequestsPerS: 14.7}}
	s.Verdict = metric.JudgeBy(&s, []string{"failures"})
	got := conclusion.OfLevels([]outcome.Level{{Summary: s}})
	if text := strings.Join(got.Text, " "); !strings.Contains(text, "13 of 160 requests failed") {
		t.Errorf("the conclusion is %q", text)
	}
	if !slices.ContainsFunc(s.Verdict.Reasons, func(r metric.Reason) bool { return strings.Contains(r.Text, "13 of 160 requests failed") }) {
		t.Errorf("the verdict is %+v", s.Verdict.Reasons)
	}
}

func TestNoSuccess(t *testing.T) {
	for failed, want := range map[int]string{12: "None of 12 requests succeeded.", 0: "None of 12 requests had finished when the run was stopped."} {
		s := metric.Summary{Counts: metric.Counts{Requests: 12, Failed: failed, Canceled: 12 - failed}, Throughput: &metric.Throughput{}}
		if got := conclusion.OfLevels([]outcome.Level{{Summary: s}}); len(got.Text) == 0 || got.Text[0] != want {
			t.Errorf("with %d failures: %q, want %q", failed, got.Text, want)
		}
	}
}

// The conclusion of a search is about the probe that held at the limit, not about the
// last probe.
func TestSearchNamesTheProbeThatHeld(t *testing.T) {
	r := noted(rates(nil, 2, 20, 5, 10))
	r.HeldProbe = new(2)
	r.Swept = "request-rate"
	r.Order() // by load: 5, 10, 20
	if held := conclusion.Of(&r).Held; held == nil || held.Level != 1 || held.Name != "10 req/s" || held.Requests != 400 {
		t.Errorf("%+v held, want the probe at 10 req/s", held)
	}
	r.HeldProbe = nil
	if held := conclusion.Of(&r).Held; held != nil {
		t.Errorf("%+v held, want none", held)
	}
}

// A throughput per second needs more requests than a burst has, and twice as many as the concurrency.
func TestFewRequestsAreNoRate(t *testing.T) {
	rate := regexp.MustCompile(`requests/s|Serves|Keeps up|Gains`)
	for _, n := range []int{1, 2, 5, 9, 10, 20, 39, 40, 100, 400} {
		for name, c := range map[string]struct {
			load  load
			least int // requests of a rate
		}{
			"burst":          {load{n: n, ttft: 30 * ms}, 1 << 30},
			"rate":           {load{rate: 20, n: n, ttft: 30 * ms}, 10},
			"concurrency 1":  {load{users: 1, n: n, ttft: 30 * ms}, 10},
			"concurrency 20": {load{users: 20, n: n, ttft: 30 * ms}, 40},
		} {
			r := run(c.load)
			got := conclusion.Of(&r)
			served := slices.ContainsFunc(got.Headline.Numbers(), func(n conclusion.Number) bool { return n.Unit == "requests/s" })
			if text := got.Text[0]; rate.MatchString(text) != (n >= c.least) || served != (n >= c.least) {
				t.Errorf("%s, %d requests: %s %v", name, n, text, got.Headline.Numbers())
			}
		}
	}
}

// A limit that is not an SLO of the user is no goal. One load has one rate.
func TestNoInventedSLO(t *testing.T) {
	for _, one := range slices.Concat(measured(), others(t)) {
		c := conclusion.Of(&one.run)
		slo := len(one.run.Levels[0].Summary.Config.Goodput) > 0
		if text := strings.Join(c.Text, " "); !slo && !strings.Contains(text, found) && (strings.Contains(text, "<") || c.Goal != "") || strings.Contains(text, "(served") {
			t.Errorf("%s: %s, goal %q", one.name, text, c.Goal)
		}
	}
}

// A simulated run and its verdict are named before the first sentence. Requests that failed at the level of the first
// sentence come before it, with their cause.
func TestWordsBeforeTheSentence(t *testing.T) {
	for _, one := range measured() {
		c := conclusion.Of(&one.run)
		text := c.Text[0]
		if named := strings.Contains(text, outcome.SimulatedWord+": "); named != one.run.Simulated() || c.Simulated != named {
			t.Errorf("%s: %s", one.name, text)
		}
		if c.Verdict == metric.Degraded && !strings.HasPrefix(text, string(metric.Degraded)) {
			t.Errorf("%s: no verdict in %q", one.name, text)
		}
		if l := c.Headline.Load; l != nil && one.run.HeldProbe == nil {
			s := &one.run.Levels[l.Level].Summary
			if many := s.Failed*100 > s.Ended(); many != regexp.MustCompile(`^(\w+(, \w+)*: )?[\d,]+ of [\d,]+ requests failed \(.*\), (most often|all) with status 503: busy\.$`).MatchString(text) {
				t.Errorf("%s: %d of %d failed: %s", one.name, s.Failed, s.Ended(), text)
			}
		}
	}
}

// An SLO of the level is judged by its statistics, also for one level.
func TestSLOOfLevels(t *testing.T) {
	var run outcome.Run
	for i, ttft := range []float64{100, 200, 400} {
		l := tried{users: 1 << i, n: 200, served: 10 * float64(i+1), ttft: ttft, verdict: metric.Valid}.level()
		l.Summary.Config.SLO = "ttft:p99<250ms"
		run.Levels = append(run.Levels, l)
	}
	c := conclusion.Of(&run)
	want := "Holds TTFT p99 < 250 ms up to concurrency 2 (20 req/s, 400 tok/s); above that TTFT p99 is 400 ms at concurrency 4."
	if c.Text[0] != want || c.Goal != "TTFT p99 < 250 ms" || c.Held.Level != 1 || c.Breaks.Limit != 250 {
		t.Errorf("%+v", c)
	}
	for i, want := range map[int]string{0: "Meets TTFT p99 < 250 ms.", 2: "Misses TTFT p99 < 250 ms: TTFT p99 is 400 ms."} {
		if text := conclusion.OfLevels(run.Levels[i : i+1]).Text; text[len(text)-1] != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
	s := &run.Levels[0].Summary
	s.Requests, s.Completed, s.Failed = 200, 190, 10
	if text := conclusion.Of(&run).Text; !strings.Contains(strings.Join(text, " "), "Misses TTFT p99 < 250 ms even at concurrency 1; 5 % of the requests fail.") {
		t.Errorf("%q", text)
	}
}
