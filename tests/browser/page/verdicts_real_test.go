//go:build real

package page_test

import (
	"fmt"
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

// TestRealDoubtsAreAtTheFigure checks that a figure in doubt is marked where it stands, with the reason, that a figure that is
// not usable has no place on a line, and that the other figures of the level have no mark.
func TestRealDoubtsAreAtTheFigure(t *testing.T) {
	run := withVerdicts(metric.Valid, metric.Degraded, metric.Valid)
	run.Levels[1].Summary.Verdict.Reasons = []metric.Reason{
		{Code: "late-reads", Severity: metric.Degraded, Unusable: true, Text: "the client read tokens of several steps together", Figures: []string{"itl", "tpot"}},
		{Code: "ttft-bound", Severity: metric.Degraded, Text: "the first token is uncertain", Figures: []string{"ttft"}},
	}
	p := open(t, desk, "#level=20", run)
	marks := eval[map[string]string](p, `Object.fromEntries(COLUMNS.map(([name], k) => [name, document.querySelectorAll('#levels tr[data-pick="0:1"] td')[[...document.querySelectorAll('#levels th')].findIndex((e) => e.querySelector('[data-sort="' + k + '"]'))]?.querySelector('sup.doubt')?.outerHTML || '']))`)
	for name, html := range marks {
		want := map[string]string{"TTFT": "the first token is uncertain", "ITL": "tokens of several steps", "TPOT": "tokens of several steps"}[strings.Split(name, " ")[0]]
		if want == "" && html != "" || !strings.Contains(html, want) {
			t.Errorf("%s: %q, want %q", name, html, want)
		}
	}
	if n := eval[int](p, "document.querySelectorAll('#levels tr[data-pick=\"0:0\"] sup.doubt, #levels tr[data-pick=\"0:2\"] sup.doubt').length"); n != 0 {
		t.Errorf("%d figures of the other levels are marked", n)
	}
	for name, want := range map[string]int{"TTFT over load": 0, "Throughput": 0, "TPOT over load": 2} {
		if n := eval[int](p, fmt.Sprintf("document.querySelectorAll('[data-figure=%q] .cross').length", name)); n != want {
			t.Errorf("%s has %d crosses, want %d", name, n, want)
		}
	}
	for _, name := range []string{"TTFT", "TPOT", "ITL"} {
		if n := eval[int](p, fmt.Sprintf("document.querySelectorAll('[data-figure=%q] figcaption sup.doubt').length", name)); n != 1 {
			t.Errorf("the distribution of %s has %d marks", name, n)
		}
	}
	p.do("choose(sloOfLink('tpot:p50<1000s'))")
	if answer := eval[string](p, "document.getElementById('slo-answer').innerText"); !strings.Contains(answer, "Excluded because INVALID: 20 requests/s") {
		t.Errorf("an SLO on a figure that is not usable: %q", answer)
	}
}

// TestRealNotesAgreeWithTheVerdict checks that the note on the client's pauses is the verdict's reason, and names its level.
func TestRealNotesAgreeWithTheVerdict(t *testing.T) {
	run := withVerdicts(metric.Valid, metric.Degraded, metric.Valid)
	for i := range run.Levels {
		run.Levels[i].Summary.Config.Client = &metric.Client{Pauses: metric.Pauses{LongestMillis: 110, TotalS: 0.1}}
	}
	run.Levels[1].Summary.Verdict.Reasons = []metric.Reason{{Code: "client-stalled", Severity: metric.Degraded, Text: "the client was not scheduled for 0.1 s of 3.0 s: give it a core"}}
	p := open(t, desk, "", run)
	row := func(name string) string {
		return eval[string](p, fmt.Sprintf("[...document.querySelectorAll('#behind-table tr')].find((e) => e.innerText.startsWith(%q))?.innerText || ''", name))
	}
	if said := row("Longest pause of the client"); !strings.Contains(said, "At 20: the client was not scheduled for 0.1 s of 3.0 s.") {
		t.Errorf("%q", said)
	}
	run.Levels[1].Summary.Verdict = metric.Verdict{Severity: metric.Valid}
	p = open(t, desk, "", run)
	if said := row("Longest pause of the client"); !strings.Contains(said, "No pause of the client affects the figures.") {
		t.Errorf("%q", said)
	}
}

// TestRealClosedLoopHasNoSendRate checks that the page shows a send rate for open loops only.
func TestRealClosedLoopHasNoSendRate(t *testing.T) {
	run := measured(about, levels()...)
	heads := "[...document.querySelectorAll('#levels th')].map((e) => e.innerText).join() + document.getElementById('behind-table').innerText"
	if said := eval[string](open(t, desk, "", run), heads); !strings.Contains(said, "sent,") || !strings.Contains(said, "Request rate configured / sent") {
		t.Errorf("an open loop: %q", said)
	}
	for i := range run.Levels {
		l := &run.Levels[i]
		l.Name, l.Rate, l.Concurrency = fmt.Sprintf("--max-concurrency %d", 8*(i+1)), 0, 8*(i+1)
	}
	if said := eval[string](open(t, desk, "", run), heads); strings.Contains(said, "sent,") || strings.Contains(said, "/ sent") {
		t.Errorf("a closed loop: %q", said)
	}
}

// TestRealTwoRatesHaveTwoNames checks that the rate of the steady window is not called like the rate of the whole level.
func TestRealTwoRatesHaveTwoNames(t *testing.T) {
	p := open(t, desk, "", measured(about, levels()...))
	if line := eval[string](p, "document.getElementById('level-line').innerText"); !strings.Contains(line, "requests/s served over the whole level") || !strings.Contains(line, "Without start and end, in the steady window from") {
		t.Errorf("%q", line)
	}
}

// TestRealTitleSaysWhatWasMeasured checks that page and browser tab are called by model, load and engine.
func TestRealTitleSaysWhatWasMeasured(t *testing.T) {
	p := open(t, desk, "", measured(about, levels()...))
	if tab := eval[string](p, "document.title"); tab != "llama-3.1-8b · 10 to 30 req/s · vllm · tuned – tacho" {
		t.Errorf("the tab is %q", tab)
	}
	if title := eval[string](p, "document.querySelector('h1').innerText"); title != "llama-3.1-8b · 10 to 30 req/s · vllm · tuned" {
		t.Errorf("the title is %q", title)
	}
}

// TestRealBurstHasNoRate checks that the page names no rate and no percentile for which there are too few requests.
func TestRealBurstHasNoRate(t *testing.T) {
	burst := func(n int) outcome.Run {
		list := requests(0, n, 1e6, 0)
		run := measured(about, list)
		l := &run.Levels[0]
		l.Name, l.Rate, l.Summary.Config.RequestRate, l.Summary.Rate = fmt.Sprintf("--num-prompts %d", n), 0, 0, nil
		return run
	}
	for n, want := range map[int]string{1: "1 request served in ", 20: "20 requests served in "} {
		p := open(t, desk, "", burst(n))
		said := eval[string](p, "document.getElementById('level-line').innerText + document.getElementById('numbers').innerText")
		if !strings.HasPrefix(said, want) || strings.Contains(said, "requests/s") {
			t.Errorf("%d requests: %q", n, said)
		}
		if n == 1 && !strings.Contains(said, ", TTFT ") {
			t.Errorf("one request has no TTFT: %q", said)
		}
		charts := eval[string](p, "[...document.querySelectorAll('#dist-charts figure')].filter((e) => !e.hidden).map((e) => e.dataset.figure + ' ' + e.querySelector('.note').innerText + [...e.querySelectorAll('svg text')].map((e) => e.textContent)).join('; ')")
		if strings.Contains(strings.Split(charts, "ITL")[0], "p99") || n == 1 && strings.Contains(charts, "TTFT") || n > 1 && !strings.Contains(charts, "TTFT p50 ") {
			t.Errorf("%d requests: %s", n, charts)
		}
	}
}
