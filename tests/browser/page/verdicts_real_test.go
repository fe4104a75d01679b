//go:build real

package page_test

import (
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// withVerdicts returns a run of levels with the given verdicts and an SLO that each level but the last meets.
func withVerdicts(verdicts ...metric.Severity) outcome.Run {
	all := levels()
	run := judged(measured(about, all[:len(verdicts)]...))
	for i, v := range verdicts {
		run.Levels[i].Summary.Verdict = metric.Verdict{Severity: v}
		if v != metric.Valid {
			run.Levels[i].Summary.Verdict.Reasons = []metric.Reason{{Code: "a", Severity: v, Text: "the clock moved: read the kernel's log"}}
		}
	}
	return run
}

// chipsOf returns the texts of the chips beside the title.
func chipsOf(p *tab) string {
	return eval[string](p, "[...document.querySelectorAll('#top .bar .badge')].map((e) => e.innerText).join('; ')")
}

// TestRealInvalidLevelsAreApart checks that an INVALID level among others is not opened, has no place on a line, and is
// hollow and crossed in every chart over load.
func TestRealInvalidLevelsAreApart(t *testing.T) {
	for name, run := range map[string]outcome.Run{
		"of three": withVerdicts(metric.Valid, metric.Valid, metric.Invalid), "of two": withVerdicts(metric.Valid, metric.Invalid),
		"lowest": withVerdicts(metric.Invalid, metric.Valid, metric.Valid),
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, desk, "", run)
			if picked := eval[int](p, "state.picked[0]"); run.Levels[picked].Summary.Verdict.Severity == metric.Invalid {
				t.Errorf("the page opens on level %d, which is INVALID", picked)
			}
			want := "1 of " + map[int]string{2: "2", 3: "3"}[len(run.Levels)] + " levels INVALID"
			if chips := chipsOf(p); !strings.Contains(chips, want) {
				t.Errorf("the chips are %q, want %q", chips, want)
			}
			for _, name := range []string{"Throughput", "TTFT over load", "TPOT over load", "Pareto"} {
				type counts struct{ Marks, Crossed, Filled, OnLine int }
				got := eval[counts](p, `(() => {
					const f = document.querySelector('[data-figure="`+name+`"]'), marks = [...f.querySelectorAll('.pick')], bad = marks.filter((m) => RUNS[0].levels[+m.dataset.pick.split(':')[1]].verdict === 'INVALID');
					const paper = getComputedStyle(document.body).backgroundColor, lines = [...f.querySelectorAll('.curve')].map((c) => c.getAttribute('d'));
					return {
						Marks: bad.length, Crossed: bad.filter((m) => m.nextElementSibling?.classList.contains('cross')).length, Filled: bad.filter((m) => getComputedStyle(m).fill !== paper).length,
						OnLine: bad.filter((m) => lines.some((d) => d.includes(m.getAttribute('cx') + ' ' + m.getAttribute('cy')))).length,
					};
				})()`)
				if got.Marks == 0 || got.Crossed != got.Marks || got.Filled > 0 || got.OnLine > 0 {
					t.Errorf("%s: %+v of the INVALID level", name, got)
				}
			}
			row := eval[string](p, "document.querySelector('#levels tr.invalid')?.innerText || ''")
			if n := eval[int](p, "document.querySelectorAll('#levels tr.invalid .cellbar').length"); !strings.Contains(row, "INVALID") || n > 0 {
				t.Errorf("the row of the INVALID level has %d bars: %q", n, row)
			}
			p.do(`pick('0:' + RUNS[0].levels.findIndex((l) => l.verdict === 'INVALID'))`)
			if head := eval[string](p, "document.getElementById('h-level').innerText + document.getElementById('level-line').innerText"); !strings.Contains(head, "! INVALID") || !strings.Contains(head, "the clock moved") {
				t.Errorf("the chosen level is called %q", head)
			}
		})
	}
}

// TestRealAllLevelsInvalid checks that a page without a usable level opens with the first, says so, and has no numbers.
func TestRealAllLevelsInvalid(t *testing.T) {
	p := open(t, desk, "", withVerdicts(metric.Invalid, metric.Invalid, metric.Invalid))
	if picked := eval[int](p, "state.picked[0]"); picked != 0 {
		t.Errorf("the page opens on level %d", picked)
	}
	if chips := chipsOf(p); chips != "! INVALID" {
		t.Errorf("the chips are %q", chips)
	}
	if line := eval[string](p, "document.getElementById('level-line').innerText"); !strings.HasPrefix(line, "All 3 levels are INVALID, and the page opens with the first.") {
		t.Errorf("the page says %q", line)
	}
	if n := eval[int](p, "document.querySelectorAll('#numbers dd').length + document.querySelectorAll('#sweep-charts .curve[d]:not([d=\"\"])').length"); n != 0 {
		t.Errorf("%d numbers and lines of INVALID levels", n)
	}
}

// TestRealSimulatedIsMarked checks that the page of a simulated engine says so beside its verdict.
func TestRealSimulatedIsMarked(t *testing.T) {
	run := measured(about, levels()...)
	if chips := chipsOf(open(t, desk, "", run)); strings.Contains(chips, "SIMULATED") {
		t.Errorf("a server: %q", chips)
	}
	run.URLs = []string{outcome.SimulatedEngine + "vllm-8b-h100"}
	other := measured(about, levels()...)
	other.Name, other.Label = "other", "plain"
	if chips := chipsOf(open(t, desk, "", run)); !strings.HasSuffix(chips, "; ≈ SIMULATED") {
		t.Errorf("a simulated engine: %q", chips)
	}
	answers := eval[[]string](open(t, desk, "", run, other), "[...document.querySelectorAll('.answer.many')].map((e) => e.innerText)")
	if len(answers) != 2 || !strings.Contains(answers[0], "SIMULATED") || strings.Contains(answers[1], "SIMULATED") {
		t.Errorf("two runs: %q", answers)
	}
}
