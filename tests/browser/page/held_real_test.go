//go:build real

package page_test

import (
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// withSLO returns a run whose first two levels meet an SLO and whose third level misses
// it.
func withSLO() outcome.Run {
	return judged(measured(about, requests(0, 120, 10, 0), requests(1, 120, 20, 0), requests(2, 180, 30, 0)))
}

// judged adds an SLO to a run. Its first two levels meet it, and the others miss it.
func judged(run outcome.Run) outcome.Run {
	for i := range run.Levels {
		s := &run.Levels[i].Summary
		s.Config.Goodput = []metric.SLO{{Metric: "ttft", LimitMillis: 100}}
		share := 1.0
		if i > 1 {
			share = 0.5
		}
		s.Throughput.GoodPerS = new(share * s.Throughput.RequestsPerS)
	}
	return run
}

// TestRealPageOpensOnTheProbeThatHeld checks that the page of a search opens on the probe
// that met the SLO at the limit.
func TestRealPageOpensOnTheProbeThatHeld(t *testing.T) {
	run := withSLO()
	run.Notes, run.HeldProbe = append(run.Notes, outcome.LimitNote("Holds.")), new(0)
	if i := eval[int](open(t, desk, "", run), "state.picked[0]"); i != 0 {
		t.Errorf("the page opens on level %d, and probe 0 held", i)
	}
}

// TestRealPageMarksTheHeldLevel checks that the page opens on the level of its
// conclusion, marks the level in its charts, and draws the SLO in the chart of its
// metric.
func TestRealPageMarksTheHeldLevel(t *testing.T) {
	p := open(t, desk, "", withSLO())
	if i := eval[int](p, "state.picked[0]"); i != 1 {
		t.Errorf("the page opens on level %d, and level 1 is the highest that holds the SLO", i)
	}
	for _, name := range []string{"Throughput", "TTFT over load", "TPOT over load"} {
		if got := p.values(chart(name) + " [data-mark=SLO]"); len(got) != 1 || got[0] != 20 {
			t.Errorf("%s has its mark at %v, want 20", name, got)
		}
	}
	if n := eval[int](p, `document.querySelectorAll('[data-figure="TTFT over load"] [data-limit="100"]').length`); n != 1 {
		t.Errorf("the chart of TTFT has %d lines for the limit", n)
	}
	if n := eval[int](p, `document.querySelectorAll('[data-limit]').length`); n != 1 {
		t.Errorf("the page has %d lines for the limit of TTFT", n)
	}
	if text := eval[string](p, "document.querySelector('.answer').innerText"); !strings.HasPrefix(text, "Holds TTFT < 100 ms") && !strings.Contains(text, ": Holds TTFT < 100 ms") {
		t.Errorf("the page says %q", text)
	}
}

// TestRealBadgeIsOfTheConclusion checks that the verdict beside the conclusion comes from
// the levels it rests on, and not from an overloaded level above them.
func TestRealBadgeIsOfTheConclusion(t *testing.T) {
	run := judged(measured(about, requests(0, 120, 10, 0), requests(1, 120, 20, 0), requests(2, 180, 30, 0), requests(3, 240, 40, 0)))
	for i, severity := range []metric.Severity{metric.Valid, metric.Valid, metric.Valid, metric.Degraded} {
		run.Levels[i].Summary.Verdict = metric.Verdict{Severity: severity}
		if severity == metric.Degraded {
			run.Levels[i].Summary.Verdict.Reasons = []metric.Reason{{Code: metric.QueueGrowth, Severity: severity, Text: "the server did not keep up"}}
		}
	}
	p := open(t, desk, "", run)
	if got := eval[string](p, "document.querySelector('#top .badge').innerText"); got != "✓ VALID" {
		t.Errorf("the badge is %q", got)
	}
	if got := eval[string](p, `document.querySelector('tr[data-pick="0:3"]').innerText`); !strings.Contains(got, "DEGRADED") {
		t.Errorf("the row of the overloaded level: %q", got)
	}
	if got := eval[string](p, "document.querySelector('.reasons').innerText"); !strings.Contains(got, "the server did not keep up") {
		t.Errorf("the reasons: %q", got)
	}
}

// TestRealReasonOfTheHeadlineIsNotRepeated checks that the reasons of an INVALID run leave
// out the words of its headline.
func TestRealReasonOfTheHeadlineIsNotRepeated(t *testing.T) {
	run := measured(about, requests(0, 40, 10, 0))
	run.Levels[0].Summary.Verdict = metric.Verdict{Severity: metric.Invalid, Reasons: []metric.Reason{
		{Code: "a", Severity: metric.Invalid, Text: "the clock moved"}, {Code: "b", Severity: metric.Invalid, Text: "the disk was full"},
	}}
	p := open(t, desk, "", run)
	headline, reasons := eval[string](p, "[...document.querySelectorAll('.answer')].map((e) => e.innerText).join(' ')"), eval[string](p, "[...document.querySelectorAll('.reasons')].map((e) => e.textContent).join()")
	if first, rest, _ := strings.Cut(headline, ". "); first != "INVALID: nothing can be concluded" || !strings.HasPrefix(rest, "The clock moved") {
		t.Errorf("the headline is %q", headline)
	}
	if !strings.Contains(headline, "he clock moved") || strings.Contains(reasons, "the clock moved") || !strings.Contains(reasons, "the disk was full") {
		t.Errorf("headline %q, reasons %q", headline, reasons)
	}
}
