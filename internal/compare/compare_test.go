package compare_test

import (
	"fmt"
	"iter"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// levelOf returns a level with figures but no requests.
func levelOf(rate float64, limit, prompts int, ttft float64) outcome.Level {
	l := outcome.Level{Setting: outcome.Setting{Prompts: prompts, Rate: rate, Concurrency: limit}}
	l.Summary.Completed, l.Summary.Tokens.Input = prompts, prompts*100
	l.Summary.Dists = metric.Dists{{Name: "ttft", Unit: metric.Millis, N: prompts, Stats: &metric.Stats{Mean: ttft, Median: ttft}}}
	return l
}

func side(name string, runs ...[]outcome.Level) compare.Side {
	s := compare.Side{Name: name}
	for _, levels := range runs {
		s.Runs = append(s.Runs, outcome.Run{About: outcome.About{Tool: "x"}, Levels: levels})
	}
	return s
}

func quantities(t *testing.T, names ...string) []metric.Quantity {
	t.Helper()
	var out []metric.Quantity
	for _, n := range names {
		q := must.Get(metric.ParseQuantity(n))(t)
		out = append(out, q)
	}
	return out
}

func compared(t *testing.T, names string, sides ...compare.Side) *compare.Comparison {
	t.Helper()
	return must.Get(compare.Compare(sides, compare.Options{Quantities: quantities(t, strings.Fields(names)...)}))(t)
}

// summary lists every level with the runs and values of its first row.
func summary(c *compare.Comparison) string {
	var b strings.Builder
	for _, l := range c.Levels {
		fmt.Fprintf(&b, "%s %v", l.Name, l.Runs)
		for _, v := range l.Rows[0].Values {
			if v == nil {
				fmt.Fprint(&b, " -")
			} else {
				fmt.Fprintf(&b, " %g", *v)
			}
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

func TestLevelsAreMatched(t *testing.T) {
	for name, c := range map[string]struct {
		a, b  []outcome.Level
		want  string
		alone int
	}{
		"by rate, whatever the number of prompts": {
			[]outcome.Level{levelOf(4, 0, 100, 1), levelOf(8, 0, 100, 2)},
			[]outcome.Level{levelOf(8, 0, 200, 3), levelOf(16, 0, 200, 4)},
			"request-rate 8 [1 1] 2 3", 2,
		},
		"by limit": {[]outcome.Level{levelOf(0, 4, 10, 1)}, []outcome.Level{levelOf(0, 4, 20, 2)}, "max-concurrency 4 [1 1] 1 2", 0},
		"bursts by their prompts": {
			[]outcome.Level{levelOf(0, 0, 1, 1), levelOf(0, 0, 2, 2)},
			[]outcome.Level{levelOf(0, 0, 2, 5), levelOf(0, 0, 4, 6)},
			"num-prompts 2 [1 1] 2 5", 2,
		},
		"prompts that are a list": {
			[]outcome.Level{levelOf(0, 8, 1, 1), levelOf(0, 8, 2, 2)},
			[]outcome.Level{levelOf(0, 8, 1, 3), levelOf(0, 8, 2, 4)},
			"max-concurrency 8 [1 1] 1 3; max-concurrency 8 [1 1] 2 4", 0,
		},
		"repeats": {
			[]outcome.Level{levelOf(4, 0, 9, 1), levelOf(4, 0, 9, 3)},
			[]outcome.Level{levelOf(4, 0, 9, 5), levelOf(4, 0, 9, 7), levelOf(4, 0, 9, 9)},
			"request-rate 4 [2 3] 2 7", 0,
		},
	} {
		got := compared(t, "ttft.mean", side("a", c.a), side("b", c.b))
		if summary(got) != c.want || len(got.Alone) != c.alone {
			t.Errorf("%s: %q with %d alone, want %q with %d", name, summary(got), len(got.Alone), c.want, c.alone)
		}
	}
}

// The interval of a time never falls below -100 %, however far runs spread.
func TestChangesArePossible(t *testing.T) {
	a := []outcome.Level{levelOf(4, 0, 9, 10), levelOf(4, 0, 9, 30)}
	b := []outcome.Level{levelOf(4, 0, 9, 1), levelOf(4, 0, 9, 35)}
	d := compared(t, "ttft.mean", side("a", a), side("b", b)).Levels[0].Rows[0].Deltas[1]
	if d.Low == nil || *d.Low != -20 || *d.High <= 0 {
		t.Errorf("from a mean of 20: %+v", d)
	}
}

// Other list options are coordinates too.
func TestCoordinates(t *testing.T) {
	at := func(value string, ttft float64) outcome.Level {
		l := levelOf(4, 0, 10, ttft)
		l.Coordinates = outcome.Coordinates{{Name: "random-input-len", Value: value}}
		l.Name = "--random-input-len " + value
		return l
	}
	got := compared(t, "ttft.mean", side("a", []outcome.Level{at("100", 1), at("200", 2)}), side("b", []outcome.Level{at("200", 3), at("100", 4)}))
	if want := "random-input-len 100 [1 1] 1 4; random-input-len 200 [1 1] 2 3"; summary(got) != want {
		t.Errorf("%q, want %q", summary(got), want)
	}
}

func TestNothingInCommon(t *testing.T) {
	_, err := compare.Compare([]compare.Side{side("a", []outcome.Level{levelOf(4, 0, 10, 1)}), side("b", []outcome.Level{levelOf(8, 0, 10, 1)})}, compare.Options{Quantities: quantities(t, "ttft.mean")})
	if err == nil || !strings.Contains(err.Error(), "a has request-rate 4, and b has request-rate 8") {
		t.Error(err)
	}
}

// The seeds: vLLM against TGI, by prompts, and only prompts of the same length.
func TestSeeds(t *testing.T) {
	var sides []compare.Side
	for _, file := range []string{"000_902df92d1b3a4732.txt", "001_8b5b9f497242493f.txt"} {
		runs := must.Get(archive.All("../../testdata/seeds/"+file, nil))(t)
		sides = append(sides, compare.Side{Name: file, Runs: runs})
	}
	c := compared(t, "ttft.mean output_throughput", sides...)
	if len(c.Levels) != 12 || len(c.Alone) != 12 {
		t.Fatalf("%d levels and %d alone, want 12 and 12", len(c.Levels), len(c.Alone))
	}
	last := c.Levels[11]
	if last.Name != "num-prompts 2048 input-len 81" || *last.Rows[0].Values[0] != 128150.28 || *last.Rows[0].Values[1] != 55778.92 {
		t.Errorf("%s: %v, %v", last.Name, *last.Rows[0].Values[0], *last.Rows[0].Values[1])
	}
	if d := last.Rows[0].Deltas[1]; d.Verdict != compare.Untold || d.P != nil || math.Abs(*d.Share+0.5647) > 1e-4 {
		t.Errorf("%+v", d)
	}
}

// Four runs of each side are the units of the test. scipy.stats.ttest_ind([10, 11,
// 12, 11], [13, 14, 12, 14], equal_var=False).pvalue is 0.012194186818373729.
func TestRepeatsAreTheUnit(t *testing.T) {
	runs := func(values ...float64) (out [][]outcome.Level) {
		for _, v := range values {
			out = append(out, []outcome.Level{levelOf(4, 0, 10, v)})
		}
		return out
	}
	c := compared(t, "ttft.mean", side("a", runs(10, 11, 12, 11)...), side("b", runs(13, 14, 12, 14)...))
	d := c.Levels[0].Rows[0].Deltas[1]
	if d.P == nil || math.Abs(*d.P-0.012194186818373729) > 1e-9 || d.Verdict != compare.Worse || d.Difference != 2.25 {
		t.Errorf("p %v, %s, %v", *d.P, d.Verdict, d.Difference)
	}
	if c := compared(t, "ttft.mean", side("a", runs(10, 11, 12, 11)...), side("b", runs(10.5, 11.5, 11, 10.9)...)); c.Levels[0].Rows[0].Deltas[1].Verdict != compare.Same {
		t.Error("equal runs differ")
	}
	// A single run against four uses the variance of the four.
	if d := compared(t, "ttft.mean", side("a", runs(10, 11, 12, 11)...), side("b", runs(12)...)).Levels[0].Rows[0].Deltas[1]; d.Verdict == compare.Worse {
		t.Errorf("one run within the spread of the others: %+v", d)
	}
}

func TestWarnings(t *testing.T) {
	a, b := side("a", []outcome.Level{levelOf(4, 0, 10, 1)}), side("b", []outcome.Level{levelOf(4, 0, 10, 1)})
	if c := compared(t, "ttft.mean", a, b); len(c.Warnings) > 0 {
		t.Errorf("of equal runs: %q", c.Warnings)
	}
	r, l := &b.Runs[0], &b.Runs[0].Levels[0]
	a.Runs[0].Model, r.Model = "m1", "m2"
	a.Runs[0].Tokenizer, r.Tokenizer = "t1", "t2"
	a.Runs[0].Dataset, r.Dataset = "d1", "d2"
	r.Tool = "y"
	a.Runs[0].Levels[0].Summary.Clock.Name, l.Summary.Clock.Name = "kernel", "read"
	a.Runs[0].Levels[0].Summary.Verdict.Severity, l.Summary.Verdict.Severity = metric.Valid, metric.Invalid
	l.Summary.Tokens.Input = 2000
	all := strings.Join(compared(t, "ttft.mean", a, b).Warnings, "\n")
	for _, want := range []string{
		"clients differ (x, y)", "models differ (m1, m2)", "tokenizers differ (t1, t2)", "workloads differ (d1, d2)",
		"clocks differ (kernel, read)", "verdicts differ (VALID, INVALID)", "prompts differ in length by up to 100 %",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in:\n%s", want, all)
		}
	}
}

// A run that is on both sides cannot differ, so a gate over it passes without a reason.
func TestSameRunIsNamed(t *testing.T) {
	a, b := side("a", []outcome.Level{levelOf(4, 0, 10, 1)}), side("b", []outcome.Level{levelOf(4, 0, 10, 1)})
	a.Runs[0].Name, a.Runs[0].Began = "run", time.Unix(1, 0)
	b.Runs[0].Name, b.Runs[0].Began = "run", time.Unix(2, 0)
	if c := compared(t, "ttft.mean", a, b); len(c.Warnings) > 0 {
		t.Errorf("of two runs of one name: %q", c.Warnings)
	}
	b.Runs[0].Began = a.Runs[0].Began
	if all := compared(t, "ttft.mean", a, b).Warnings; len(all) != 1 || !strings.Contains(all[0], "a and b contain the same run, run") {
		t.Errorf("%q", all)
	}
}

// Builds without a commit have equal versions but may be different builds.
func TestUnknownBuildsAreNamed(t *testing.T) {
	a, b := side("a", []outcome.Level{levelOf(4, 0, 10, 1)}), side("b", []outcome.Level{levelOf(4, 0, 10, 1)})
	for _, s := range []compare.Side{a, b} {
		s.Runs[0].Tool, s.Runs[0].Version = "tacho", "(devel)"
	}
	if all := compared(t, "ttft.mean", a, b).Warnings; len(all) != 1 || !strings.Contains(all[0], "the build of tacho is unknown (a, b)") {
		t.Errorf("%q", all)
	}
	a.Runs[0].Version, b.Runs[0].Version = "(devel) 0a1b", "(devel) 2c3d"
	if all := compared(t, "ttft.mean", a, b).Warnings; len(all) != 1 || !strings.Contains(all[0], "clients differ (tacho (devel) 0a1b, tacho (devel) 2c3d)") {
		t.Errorf("%q", all)
	}
}

func conditions(t *testing.T, text string) []metric.Condition {
	t.Helper()
	return must.Get(metric.ParseConditions(text))(t)
}

// states lists the findings of a gate.
func states(found []compare.Finding) string {
	var out []string
	for _, f := range found {
		out = append(out, string(f.State)+" "+f.Text)
	}
	return strings.Join(out, "|")
}

func TestGateOfARun(t *testing.T) {
	l := levelOf(4, 0, 90, 150)
	l.Summary.Failed, l.Summary.Config.Unsent, l.Summary.Requests = 10, 25, 75
	l.Summary.Verdict.Severity = metric.Degraded
	l.Summary.Dists[0].Stats.Percentiles = []metric.Percentile{{P: 90, Value: math.NaN()}, {P: 95, Value: math.Inf(1)}}
	run := &outcome.Run{Levels: []outcome.Level{l}}
	for text, want := range map[string]string{
		"ttft.mean>200ms":              "PASSED ttft.mean>200ms: ttft.mean is 150 ms",
		"ttft.mean>0.1s":               "FAILED ttft.mean>0.1s: ttft.mean is 150 ms",
		"failures>10%":                 "PASSED failures>10%: failures is 10 %",
		"failures>9.9%":                "FAILED failures>9.9%: failures is 10 %",
		"ttft.mean>1,failures>1%":      "FAILED ttft.mean>1: ttft.mean is 150 ms|FAILED failures>1%: failures is 10 %",
		"ttft.p90>1":                   "NOT JUDGED ttft.p90>1: ttft.p90 is not a finite number",
		"ttft:mean < 200 ms, error<1%": "FAILED ttft:mean < 200 ms: ttft.mean is 150 ms|PASSED error<1%: failures is 10 %",
		"tpot.p99>1ms":                 "NOT JUDGED tpot.p99>1ms: the run has no tpot.p99",
		"request_throughput<1":         "NOT JUDGED request_throughput<1: the run has no request_throughput",
		"unsent>20%":                   "FAILED unsent>20%: unsent is 25 %",
		"missing>30%":                  "PASSED missing>30%: unsent is 25 %",
		"verdict>valid":                "FAILED verdict>valid: verdict is DEGRADED",
		"verdict>degraded":             "PASSED verdict>degraded: verdict is DEGRADED",
	} {
		found, err := compare.Judge(run, conditions(t, text))
		if got := states(found); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	if _, err := compare.Judge(run, conditions(t, "ttft.mean>+10%")); err == nil {
		t.Error("a difference was asked of a run alone")
	}
}

// The condition slo fails if a level misses the SLO of its run.
func TestGateOfAnSLO(t *testing.T) {
	for slo, want := range map[string]string{
		"":                         "NOT JUDGED slo: the run has no SLO: use --slo with bench, as --slo 'ttft:p99<500ms'",
		"ttft:mean<200ms":          "PASSED ttft:mean<200ms: ttft.mean is 150 ms",
		"ttft:mean<100ms":          "FAILED ttft:mean<100ms: ttft.mean is 150 ms",
		"tpot:p99<1ms":             "NOT JUDGED tpot:p99<1ms: the run has no tpot.p99",
		"error<1%,ttft:mean<200ms": "FAILED error<1%: failures is 10 %|FAILED ttft:mean<200ms: 10 of 100 requests failed",
	} {
		l := levelOf(4, 0, 90, 150)
		if strings.HasPrefix(slo, "error") {
			l.Summary.Failed, l.Summary.Requests = 10, 100
		}
		l.Summary.Config.SLO = slo
		found, err := compare.Judge(&outcome.Run{Levels: []outcome.Level{l}}, conditions(t, "slo"))
		if got := states(found); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", slo, got, err, want)
		}
	}
}

// A value close to its limit is written with the digits that tell them apart.
func TestGateCloseToTheLimit(t *testing.T) {
	run := &outcome.Run{Levels: []outcome.Level{levelOf(4, 0, 90, 200.04)}}
	found, err := compare.Judge(run, conditions(t, "ttft.mean>200ms"))
	if got := states(found); err != nil || got != "FAILED ttft.mean>200ms: ttft.mean is 200.04 ms" {
		t.Errorf("%q, %v", got, err)
	}
	a, b := side("a", []outcome.Level{levelOf(4, 0, 90, 100)}), side("b", []outcome.Level{levelOf(4, 0, 90, 110.02)})
	if got := states(compared(t, "ttft.mean", a, b).Judge(conditions(t, "ttft.mean>+10%"), true)); !strings.Contains(got, "+10.02 %") {
		t.Errorf("%q", got)
	}
}

// An INVALID level, or a percentile of too few requests, does not pass a gate.
func TestGateWithoutEvidence(t *testing.T) {
	run := virtual(t, &trials[1], 1, 1)
	l := &run.Levels[0]
	n := l.Summary.Dist(metric.TTFT).N
	if n >= 1000 {
		t.Fatalf("%d requests: the test wants fewer", n)
	}
	for text, want := range map[string]compare.State{"ttft.p99.9>1h": compare.NotJudged, "ttft.p50>1h": compare.Passed, "ttft.p99.9>1ns": compare.Failed} {
		found, err := compare.Judge(&run, conditions(t, text))
		if err != nil || len(found) != 1 || found[0].State != want {
			t.Errorf("%s of %d requests: %q, %v; want %s", text, n, states(found), err, want)
		}
	}
	l.Summary.Verdict.Severity = metric.Invalid
	for text, want := range map[string]compare.State{"ttft.p50>1h": compare.NotJudged, "ttft.p50>1ns": compare.NotJudged, "verdict>degraded": compare.Failed} {
		found, err := compare.Judge(&run, conditions(t, text))
		if err != nil || len(found) != 1 || found[0].State != want {
			t.Errorf("%s of an INVALID level: %q, %v; want %s", text, states(found), err, want)
		}
	}
	if found, err := compare.Judge(&outcome.Run{}, conditions(t, "failures>1%")); err != nil || len(found) != 1 || found[0].State != compare.NotJudged {
		t.Errorf("a run without levels: %q, %v", states(found), err)
	}
}

func TestGateOfADifference(t *testing.T) {
	a, b := virtual(t, &trials[1], 1, 1), virtual(t, &trials[1], 2, 1.2)
	c := compared(t, "ttft.mean tpot.mean tpot.p99 request_throughput", compare.Side{Name: "a", Runs: []outcome.Run{a}}, compare.Side{Name: "b", Runs: []outcome.Run{b}})
	for text, want := range map[string]compare.State{
		"tpot.mean>+10%":          compare.Failed,
		"tpot.mean>+90%":          compare.Passed,
		"tpot.mean>-90%":          compare.Failed,
		"request_throughput<-10%": compare.Failed,
		"tpot.mean>1ms":           compare.Failed,
		"itl.p99>+1%":             compare.NotJudged, // not compared
	} {
		if found := c.Judge(conditions(t, text), false); len(found) != 1 || found[0].State != want {
			t.Errorf("%s: %q, want %s", text, states(found), want)
		}
	}
	same := compared(t, "tpot.mean", compare.Side{Name: "a", Runs: []outcome.Run{a}}, compare.Side{Name: "b", Runs: []outcome.Run{virtual(t, &trials[1], 3, 1)}})
	least := "tpot.mean>-1%,tpot.mean<+1%" // one of the two holds for any small difference
	if got := states(same.Judge(conditions(t, least), false)); strings.Contains(got, "FAILED") || !strings.Contains(got, "random variation") {
		t.Errorf("a difference that the test does not see: %q", got)
	}
	if got := states(same.Judge(conditions(t, least), true)); !strings.Contains(got, "FAILED") {
		t.Errorf("and unsure ones count: %q", got)
	}
}

// A comparison judges no figure that the verdict on a level rules out, on either side and in any
// repeat, and no figure of too few requests.
func TestGateNeedsSupport(t *testing.T) {
	level := func(ttft float64, v metric.Severity, n int, figures ...string) []outcome.Level {
		l := levelOf(4, 0, n, ttft)
		l.Summary.Verdict.Severity = v
		l.Summary.Dists[0].Stats.Percentiles = []metric.Percentile{{P: 99, Value: 2 * ttft}}
		if len(figures) > 0 {
			l.Summary.Verdict.Reasons = []metric.Reason{{Severity: metric.Degraded, Unusable: true, Figures: figures, Text: "why"}}
		}
		return []outcome.Level{l}
	}
	for _, c := range []struct {
		name, condition string
		a, b            compare.Side
		want            string
	}{
		{"INVALID first", "ttft.mean>+10%", side("a", level(100, metric.Invalid, 400)), side("b", level(900, metric.Valid, 400)), "NOT JUDGED ttft.mean>+10%: in a, the level is INVALID"},
		{"INVALID second", "ttft.mean>+10%", side("a", level(100, metric.Valid, 400)), side("b", level(100, metric.Invalid, 400)), "NOT JUDGED ttft.mean>+10%: in b, the level is INVALID"},
		{"INVALID, and a limit", "ttft.mean>1ms", side("a", level(100, metric.Valid, 400)), side("b", level(100, metric.Invalid, 400)), "NOT JUDGED ttft.mean>1ms: the level is INVALID"},
		{"an INVALID repeat", "ttft.mean>+10%", side("a", level(100, metric.Valid, 400), level(101, metric.Invalid, 400)), side("b", level(200, metric.Valid, 400), level(201, metric.Valid, 400)), "NOT JUDGED ttft.mean>+10%: in a, the level is INVALID"},
		{"an INVALID figure", "ttft.mean>+10%", side("a", level(100, metric.Valid, 400)), side("b", level(200, metric.Degraded, 400, "ttft")), "NOT JUDGED ttft.mean>+10%: in b, ttft is INVALID (why)"},
		{"another figure is INVALID", "ttft.mean>1ms", side("a", level(100, metric.Valid, 400)), side("b", level(200, metric.Degraded, 400, "itl")), "FAILED ttft.mean>1ms: ttft.mean of b is 200 ms"},
		{"one request, and a limit", "ttft.p99>1s", side("a", level(100, metric.Valid, 400)), side("b", level(100, metric.Valid, 1)), "NOT JUDGED ttft.p99>1s: ttft.p99 needs 100 requests, the level has 1"},
		{"one request", "ttft.mean>+1000%", side("a", level(100, metric.Valid, 400)), side("b", level(100, metric.Valid, 1)), "NOT JUDGED ttft.mean>+1000%: in b, ttft.mean needs 10 requests, the level has 1"},
		{"no number", "ttft.mean>1ms", side("a", level(100, metric.Valid, 400)), side("b", level(math.Inf(1), metric.Valid, 400)), "NOT JUDGED ttft.mean>1ms: ttft.mean of b is not a finite number"},
		{"no change of a number", "ttft.mean>+1%", side("a", level(math.Inf(1), metric.Valid, 400)), side("b", level(100, metric.Valid, 400)), "NOT JUDGED ttft.mean>+1%: ttft.mean of a is not a finite number"},
		{"another tool", "ttft.mean>+10%", side("a", level(100, metric.Unjudged, 400)), side("b", level(200, metric.Unjudged, 400)), "FAILED ttft.mean>+10%: ttft.mean of b is 200 ms, +100 % (no test: the result has no single requests)"},
		{"a prediction", "ttft.mean>1ms", side("a", level(100, metric.Predicted, 400)), side("b", level(200, metric.Predicted, 400)), "FAILED ttft.mean>1ms: ttft.mean of b is 200 ms"},
	} {
		comparison := compared(t, "ttft.mean ttft.p99", c.a, c.b)
		if got := states(comparison.Judge(conditions(t, c.condition), false)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		void := strings.Contains(c.want, "INVALID")
		for _, d := range []*compare.Delta{comparison.Levels[0].Rows[0].Deltas[1]} {
			if (d.Verdict == compare.Void) != void || void && (d.P != nil || d.Low != nil) {
				t.Errorf("%s: %+v", c.name, d)
			}
		}
	}
}

// first yields the first n records.
func first(records func() iter.Seq2[*tacho.Record, error], n int) func() iter.Seq2[*tacho.Record, error] {
	return func() iter.Seq2[*tacho.Record, error] {
		return func(yield func(*tacho.Record, error) bool) {
			i := 0
			for r, err := range records() {
				if i++; i > n || !yield(r, err) {
					return
				}
			}
		}
	}
}

// A difference without a test does not pass a gate, whatever its sign.
func TestGateWithoutTest(t *testing.T) {
	a, b := virtual(t, &trials[1], 1, 1), virtual(t, &trials[1], 2, 5)
	for _, r := range []*outcome.Run{&a, &b} {
		r.Levels[0].Records = first(r.Levels[0].Records, 20)
	}
	slow, fast := compare.Side{Name: "b", Runs: []outcome.Run{b}}, compare.Side{Name: "a", Runs: []outcome.Run{a}}
	for _, sides := range [][2]compare.Side{{fast, slow}, {slow, fast}} {
		c := compared(t, "tpot.p99", sides[0], sides[1])
		if found := c.Judge(conditions(t, "tpot.p99>+10%"), false); len(found) != 1 || found[0].State != compare.NotJudged || !strings.Contains(found[0].Text, "needs 40 in each run") {
			t.Errorf("%q, want NOT JUDGED", states(found))
		}
	}
}

func TestConditionsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"":                "no limits given",
		"ttft.p99":        "< or > is missing",
		"ttfb.p99>1":      "is not a known metric",
		"ttft>1":          "ttft needs a statistic",
		"ttft.best>1":     "is not a known statistic",
		"ttft.p0>1":       "is not a known statistic",
		"ttft.p99>fast":   "is not a limit",
		"ttft.p99>+x%":    "is not a limit",
		"failures.p99>1%": "single number per level",
		"ttft.p99>Inf":    "is not a limit",
	} {
		if _, err := metric.ParseConditions(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
