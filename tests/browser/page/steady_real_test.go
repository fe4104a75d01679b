//go:build real

package page_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/metric"
)

// note returns the text of a row in the table behind the numbers.
func note(p *tab, row string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf(`[...document.querySelectorAll('#behind-table tr')].find((r) => r.cells[0].innerText.startsWith(%q))?.innerText ?? ''`, row))
}

// TestRealReasonsOfEachLevel checks that each level shows its own reason for not reaching
// a steady state.
func TestRealReasonsOfEachLevel(t *testing.T) {
	run := measured(about, requests(0, 20, 10, 0), requests(1, 120, 20, 0), requests(2, 180, 30, 0))
	run.Levels[2].Summary.Steady = &metric.SteadyState{WhyNot: metric.LittleIsOff}
	said := note(open(t, desk, "", run), "Steady window")
	for _, want := range []string{"At 10: none, because " + metric.TooShort + ".", "At 30: none, because " + metric.LittleIsOff + "."} {
		if !strings.Contains(said, want) {
			t.Errorf("the page says %q, want %q", said, want)
		}
	}
	for i := range run.Levels {
		run.Levels[i].Summary.Steady = &metric.SteadyState{WhyNot: metric.LittleIsOff}
	}
	if said := note(open(t, desk, "", run), "Steady window"); !strings.Contains(said, "None, because "+metric.LittleIsOff+".") {
		t.Errorf("the page says %q", said)
	}
}

// TestRealNoteOnTheStart checks that the page does not recommend a warm-up if the first
// requests were faster than the rest.
func TestRealNoteOnTheStart(t *testing.T) {
	run := measured(about, levels()...)
	for i := range run.Levels {
		run.Levels[i].Summary.Steady.WarmUp = &metric.WarmUp{Metric: "ttft", Requests: 20, FirstMillis: 493, RestMillis: 593}
	}
	if said := note(open(t, desk, "", run), "First requests"); !strings.Contains(said, "The first requests were faster than the rest.") || strings.Contains(said, "--num-warmups") {
		t.Errorf("the page says %q", said)
	}
	run.Levels[0].Summary.Steady.WarmUp.FirstMillis = 800
	if said := note(open(t, desk, "", run), "First requests"); !strings.Contains(said, "At 10: the first requests were slower: warm up with --num-warmups.") || !strings.Contains(said, "At 20, 30: the first requests were faster than the rest.") {
		t.Errorf("the page says %q", said)
	}
}

// TestRealFiguresWithoutAnInterval checks that a value without confidence interval is
// marked in the table of levels, as in the other tables.
func TestRealFiguresWithoutAnInterval(t *testing.T) {
	run := measured(about, levels()...)
	none, stats := &metric.Interval{Warning: "too few"}, run.Levels[0].Summary.Dist(metric.TPOT).Stats
	stats.MedianInterval = none
	for i := range stats.Percentiles {
		stats.Percentiles[i].Interval = none
	}
	p := open(t, desk, "", run)
	cells := eval[[]string](p, `(() => {
		const at = [...document.querySelectorAll('#levels th')].findIndex((h) => h.innerText.replace(/\s+/g, ' ').startsWith('TPOT p50'));
		return [...document.querySelectorAll('#levels tbody tr')].map((r) => r.cells[at].innerText.trim().slice(-1));
	})()`)
	if cells[0] != "~" || cells[1] == "~" || cells[2] == "~" {
		t.Errorf("the medians of TPOT end with %q: only the first has no interval", cells)
	}
	if foot := eval[string](p, `document.querySelector('#levels').innerText`); !strings.Contains(foot, "~ no 95 % interval") {
		t.Errorf("no word of the mark: %s", foot)
	}
}
