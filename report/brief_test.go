package report_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
)

// A brief report has the verdict and the conclusion before the block, and only the
// details that matter for the run. Its sentences fit the screen, in whole words.
func TestBriefText(t *testing.T) {
	const wide = 80
	brief := func(level outcome.Level) string {
		r := report.Report{Runs: []outcome.Run{{About: about, Levels: []outcome.Level{level}}}, Brief: true, Wrap: wide}
		return render(t, "text", &r)
	}
	for name, level := range map[string]outcome.Level{"healthy": healthyStage(), "full": fullStage(), "sick": sickStage(), "empty": emptyStage()} {
		text := brief(level)
		golden(t, name+".brief", text)
		if !strings.HasPrefix(text, "# ") || strings.Index(text, "\nVerdict: ") > strings.Index(text, "== Serving Benchmark Result ==") {
			t.Errorf("%s: the verdict is not before the block:\n%s", name, text)
		}
	}
	whole := render(t, "text", of(healthyStage()))
	text := brief(healthyStage())
	words := strings.Fields(strings.ReplaceAll(whole, "=", " "))
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > wide {
			t.Errorf("%d characters in %q", n, line)
		}
		for word := range strings.FieldsSeq(strings.ReplaceAll(line, "=", " ")) {
			if !strings.Contains(strings.Join(words, " "), word) && !strings.Contains(strings.Join(about.URLs, " ")+about.GPUs+about.Model+about.Dataset+"Model:Server:GPUs:Dataset:", word) {
				t.Errorf("the word %q is not in the whole report", word)
			}
		}
	}
	if brief, all := strings.Count(text, "\n"), strings.Count(whole, "\n"); 3*brief > 2*all {
		t.Errorf("%d lines, the whole report has %d", brief, all)
	}
}

// A table of levels fits a terminal of 80 columns with the longest verdict. Below that
// its columns move together, and the less important ones are left out.
func TestLevelsFitTheTerminal(t *testing.T) {
	t.Parallel()
	var run outcome.Run
	for _, value := range []string{"1", "2", "64"} {
		l := fullStage()
		l.Setting = outcome.Setting{Value: value, Coordinates: outcome.Coordinates{{Name: "max-concurrency", Value: value}}}
		l.Summary.Verdict.Severity = metric.Degraded
		run.Levels = append(run.Levels, l)
	}
	for _, wide := range []int{60, 80, 200} {
		text := render(t, "curve", &report.Report{Runs: []outcome.Run{run}, Wide: wide, Wrap: wide})
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > wide {
				t.Errorf("%d columns, line of %d: %s", wide, n, line)
			}
		}
		if !strings.Contains(text, "DEGRADED\n") || strings.Contains(text, "p99 TPOT ms") != (wide >= 80) {
			t.Errorf("%d columns:\n%s", wide, text)
		}
	}
}
