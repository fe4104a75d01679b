//go:build real

package page_test

import (
	"fmt"
	"strings"
	"testing"

	"tacho/metric"
)

// note is what the table behind the numbers says in the row of that name, of the
// cells and beside them.
func note(p *tab, row string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf(`[...document.querySelectorAll('#behind-table tr')].find((r) => r.cells[0].innerText.startsWith(%q))?.innerText ?? ''`, row))
}

// Each level has its own reason for not being in balance.
func TestRealReasonsOfEachLevel(t *testing.T) {
	run := measured(about, requests(0, 20, 10, 0), requests(1, 120, 20, 0), requests(2, 180, 30, 0))
	run.Levels[2].Summary.Steady = &metric.SteadyState{WhyNot: metric.LittleIsOff}
	said := note(open(t, desk, "", run), "In balance")
	for _, want := range []string{"Never at 10: " + metric.TooShort + ".", "Never at 30: " + metric.LittleIsOff + "."} {
		if !strings.Contains(said, want) {
			t.Errorf("the page says %q, want %q", said, want)
		}
	}
	for i := range run.Levels {
		run.Levels[i].Summary.Steady = &metric.SteadyState{WhyNot: metric.LittleIsOff}
	}
	if said := note(open(t, desk, "", run), "In balance"); !strings.Contains(said, "Never: "+metric.LittleIsOff+".") {
		t.Errorf("the page says %q", said)
	}
}

// A start that was faster than the rest is no reason to warm up.
func TestRealNoteOnTheStart(t *testing.T) {
	run := measured(about, levels()...)
	for i := range run.Levels {
		run.Levels[i].Summary.Steady.WarmUp = &metric.WarmUp{Metric: "ttft", Requests: 20, FirstMillis: 493, RestMillis: 593}
	}
	if said := note(open(t, desk, "", run), "First requests"); !strings.Contains(said, "The first requests were faster than the rest.") || strings.Contains(said, "--num-warmups") {
		t.Errorf("the page says %q", said)
	}
	run.Levels[0].Summary.Steady.WarmUp.FirstMillis = 800
	if said := note(open(t, desk, "", run), "First requests"); !strings.Contains(said, "The first requests at 10 were slower: warm up with --num-warmups.") || !strings.Contains(said, "The first requests at 20, 30 were faster than the rest.") {
		t.Errorf("the page says %q", said)
	}
}

// A figure without an interval has a mark in the table of levels, as in the other tables.
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
