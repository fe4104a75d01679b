//go:build real

package page_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
	"github.com/tacho-bench/tacho/tests/browser/chrome"
)

// named returns a run whose requests have ids, labels and texts.
func named() outcome.Run {
	lists := levels()
	for stage, list := range lists {
		for i, r := range list {
			r.ID, r.Text = fmt.Sprintf("bench-7-%d", 1000*stage+i), "answer to "+fmt.Sprint(1000*stage+i)+hostile
		}
	}
	return measured(about, lists...)
}

// TestRealHeadline checks that the page shows the sentence, the three numbers and the main
// chart of the recommended level.
func TestRealHeadline(t *testing.T) {
	run := withSLO()
	p := open(t, desk, "", run)
	h := conclusion.Of(&run).Headline
	if got := eval[string](p, "document.querySelector('.answer').innerText"); got != h.Sentence {
		t.Errorf("the page says %q, want %q", got, h.Sentence)
	}
	var want []string
	for _, n := range h.Numbers() {
		want = append(want, n.Label+" "+n.Value+" "+n.Unit)
	}
	got := eval[[]string](p, `[...document.querySelectorAll('#numbers > div')].map((e) => e.innerText.replace(/\s+/g, ' '))`)
	if len(want) != 3 || !slices.Equal(got, want) {
		t.Errorf("numbers %q, want %q", got, want)
	}
	if got := eval[[]string](p, `figures.filter((f) => f.el.parentNode.id === 'hero-chart').map((f) => f.name)`); !slices.Equal(got, []string{"TTFT over load"}) {
		t.Errorf("the main chart is %q", got)
	}
	hero := eval[string](p, `document.getElementById('hero-chart').textContent`)
	if !strings.Contains(hero, "recommended: 20 req/s") || !strings.Contains(hero, "SLO 100") {
		t.Errorf("the main chart says %q", hero)
	}
	// Without an SLO and with known GPUs, the main chart is throughput per GPU.
	p = open(t, desk, "", measured(about, levels()...))
	if got := eval[string](p, `document.querySelector('#hero-chart figure').dataset.figure`); got != "Pareto" || len(p.values("#hero-chart [data-mark]")) != 1 {
		t.Errorf("the main chart is %q", got)
	}
	// An INVALID run recommends nothing.
	for i := range run.Levels {
		run.Levels[i].Summary.Verdict = metric.Verdict{Severity: metric.Invalid, Reasons: []metric.Reason{{Code: "x", Severity: metric.Invalid, Text: "of a reason"}}}
	}
	p = open(t, desk, "", run)
	if !eval[bool](p, `document.getElementById('hero').hidden && !document.querySelector('#numbers dd') && document.querySelectorAll('[data-mark]').length === 0`) {
		t.Error("the page of an INVALID run recommends a load")
	}
}

// TestRealLineStyles checks that statistics differ in dash and colour, that legends are in
// the order of the lines, and that samples of the server are steps.
func TestRealLineStyles(t *testing.T) {
	for _, dark := range []bool{false, true} {
		p := open(t, chrome.View{Width: 1600, Height: 1000, Dark: dark}, "", withSLO())
		style := func(selector string) string {
			return eval[string](p, fmt.Sprintf(`(() => { const s = getComputedStyle(document.querySelector(%q)); return s.stroke + ' ' + s.strokeDasharray })()`, selector))
		}
		for _, group := range [][]string{
			{chart("TTFT over load") + " .curve", chart("TTFT over load") + " .curve.thin"},
			{chart("Throughput") + " .curve", chart("Throughput") + " .curve.thin"},
			{`[data-line="TTFT, ms p50"] .curve`, `[data-line="TTFT, ms p95"] .curve`, `[data-line="TTFT, ms longest"] .curve`},
			{`[data-line="ITL, ms p50"] .curve`, `[data-line="ITL, ms p99"] .curve`},
			{`[data-line="requests/s due"] .curve`, `[data-line="requests/s served"] .curve`},
		} {
			colours, dashes := map[string]bool{}, map[string]bool{}
			for _, selector := range group {
				colour, dash, _ := strings.Cut(style(selector), ") ")
				colours[colour], dashes[dash] = true, true
			}
			if len(colours) < len(group) || len(dashes) < len(group) {
				t.Errorf("%q: %d colours and %d dashes", group, len(colours), len(dashes))
			}
		}
		steps := eval[bool](p, `(() => { const pts = reading(picked(first()), 'running'); return pts.length > 3 && pts.every((q, i) => !i || q[0] === pts[i - 1][0] || q[1] === pts[i - 1][1]) })()`)
		if !steps {
			t.Error("samples of the server are joined by slopes")
		}
		legend := eval[[]string](p, `[...document.querySelectorAll('[data-figure="Where the time goes"] .keys > span:not(.seg)')].map((e) => e.innerText.trim())`)
		bars := eval[[]string](p, `[...new Map(list = levelsShown().filter(splitOf).flatMap((l) => [...splitOf(l).parts].filter((q) => q.ms > 0)).map((q) => [partName(q), orderOf(q)]))].sort((a, b) => a[1] - b[1]).map(([name]) => name)`)
		if len(legend) == 0 || !slices.Equal(legend, bars) {
			t.Errorf("legend %q, bars %q", legend, bars)
		}
	}
}

// requestPlace returns the position of a request on the timeline.
const requestPlace = `(() => { const q = %s, c = document.querySelector('canvas'); c.scrollIntoView({ block: 'center' }); const b = c.getBoundingClientRect();
	return [b.x + linear(view.t0, view.t1, PAD.left, b.width - PAD.right)((q.sent + q.end) / 2), b.y + linear(view.r0, view.r1, PAD.top, b.height - PAD.bottom)(rowOf(q) + 0.5)] })()`

// TestRealPinnedRequest checks that a click pins a request with its id, times and answer,
// that keys and buttons move to its neighbours, and that its link opens it again.
func TestRealPinnedRequest(t *testing.T) {
	run := named()
	p := open(t, desk, "#level=20", run)
	const panel = "document.querySelector('.pinned')"
	at := eval[[2]float64](p, fmt.Sprintf(requestPlace, "rowsOf(timelineLevel()).find((v) => !v.error && v.i > 20)"))
	must.Do(t, p.Click(at[0], at[1]))
	p.wait("%s && %[1]s.innerText.includes('bench-7-1')", panel)
	name := eval[string](p, "pinned.q.name")
	said := eval[string](p, panel+".innerText")
	for _, want := range []string{name, "First token", "TTFT", "Input tokens", "Class", "tenant ", "answer to " + strings.TrimPrefix(name, "bench-7-"), "<script>window.hacked"} {
		if !strings.Contains(said, want) {
			t.Errorf("the panel lacks %q: %q", want, said)
		}
	}
	sent := eval[float64](p, "pinned.q.sent")
	for r := range run.Records() {
		if r.ID == name && !near(float64(r.Sent)/1e6, sent) && float64(r.Sent)/1e6-sent > 0.01 {
			t.Errorf("sent at %v, want %v", sent, r.Sent)
		}
	}
	if hash := eval[string](p, "location.hash"); hash != "#level=20&request="+name {
		t.Errorf("the address ends in %q", hash)
	}
	p.keys(false, "n")
	p.wait("pinned.q.name !== '%s'", name)
	p.click(`[data-pin="-1"]`)
	p.wait("pinned.q.name === '%s' && %s.innerText.includes('%[1]s')", name, panel)
	p.click(`[data-unpin]`)
	p.wait("!%s && location.hash === '#level=20'", panel)
	// A link opens on the request, by its id or its number.
	for _, link := range []string{"#request=bench-7-2005", "#request=2005"} {
		p = open(t, desk, link, run)
		p.wait("%s && %[1]s.innerText.includes('bench-7-2005') && state.picked[0] === 2", panel)
	}
	p.do("location.hash = '#request=1003'")
	p.wait("state.picked[0] === 1 && pinned.q.name === 'bench-7-1003'")
	p = open(t, desk, "#request=no-such", run)
	p.wait("%s.innerText.includes('not on this page')", panel)
}

// TestRealFilters checks the filters of the timeline.
func TestRealFilters(t *testing.T) {
	p := open(t, desk, "#level=20", named())
	choose := func(value string) {
		t.Helper()
		p.click(fmt.Sprintf(`.seg[data-key=only] button[data-value='%s']`, value))
		p.wait("JSON.stringify(state.only) === '%s'", value)
	}
	choose(`"failed"`)
	if n := eval[int](p, "rowsShown(timelineLevel()).filter((q) => q.error).length"); n != 10 || eval[int](p, "rowCount(timelineLevel())") != 10 {
		t.Errorf("%d failed requests of ten", n)
	}
	choose(`"slowest"`)
	if !eval[bool](p, `(() => { const all = rowsOf(timelineLevel()).filter((q) => !q.error).map((q) => q.end - q.sent), shown = rowsShown(timelineLevel()).map((q) => q.end - q.sent);
		return shown.length === 10 && shown[0] === Math.max(...all) && shown.every((v, i) => !i || v <= shown[i - 1]) })()`) {
		t.Error("the slowest requests are not the slowest")
	}
	class := eval[int](p, "timelineLevel().p.details.classes.indexOf('tenant blue')")
	choose(fmt.Sprint(class))
	if n := eval[int](p, "rowsShown(timelineLevel()).length"); n != 60 {
		t.Errorf("%d requests of tenant blue, want 60", n)
	}
	choose(`""`)
	if n := eval[int](p, "rowsShown(timelineLevel()).length"); n != 120 {
		t.Errorf("%d requests of 120", n)
	}
}

// TestRealDragZoom checks that dragging over any chart over time zooms all of them, and
// that a double click shows the whole level.
func TestRealDragZoom(t *testing.T) {
	p := open(t, desk, "#level=20", named())
	const drawn = `document.querySelector('[data-figure="Over time"] .plot').textContent`
	whole, ticks := eval[float64](p, "view.t1 - view.t0"), eval[string](p, drawn)
	for _, plot := range []string{chart("Over time") + " .plot", chart("Timeline of requests") + " canvas"} {
		x, y, _ := p.place(plot)
		want := eval[[2]float64](p, fmt.Sprintf(`(() => { const b = document.querySelector(%q).getBoundingClientRect(), s = timeScale(b.width); return [1000 * s.back(%v - b.x), 1000 * s.back(%v - b.x)] })()`, plot, x-100, x+200))
		p.mouse(chrome.Mouse{Kind: "mousePressed", X: x + 200, Y: y})
		for _, step := range []float64{150, 0, -100} {
			p.mouse(chrome.Mouse{Kind: "mouseMoved", X: x + step, Y: y, Held: true})
		}
		p.wait("document.querySelector('.range')")
		p.mouse(chrome.Mouse{Kind: "mouseReleased", X: x - 100, Y: y})
		p.wait("!document.querySelector('.range') && Math.abs(view.t0 - %v) < 1 && Math.abs(view.t1 - %v) < 1", want[0], want[1])
		p.wait(drawn+" !== %q", ticks)
		if eval[bool](p, "!!pinned") {
			t.Error("a drag pins a request")
		}
		p.do(fmt.Sprintf(`document.querySelector(%q).dispatchEvent(new MouseEvent('dblclick', { bubbles: true }))`, plot))
		p.wait("view.t1 - view.t0 === %v && "+drawn+" === %q", whole, ticks) // the next drag finds the whole level drawn
	}
}

// TestRealLinkOfLevel checks that picking a level changes the address.
func TestRealLinkOfLevel(t *testing.T) {
	p := open(t, desk, "#dark&level=10", named())
	p.click(`tr[data-pick="0:2"] td:nth-child(3)`)
	p.wait("location.hash === '#dark&level=30' && document.documentElement.dataset.theme === 'dark'")
}

var pdfPage = regexp.MustCompile(`/Type\s*/Page\b`)

// TestRealPrintedPages checks that a report is printed on two pages.
func TestRealPrintedPages(t *testing.T) {
	for name, run := range map[string]outcome.Run{"sweep": withSLO(), "single": measured(about, requests(0, 200, 10, 20))} {
		p := open(t, desk, "", run)
		pdf := must.Get(p.Print())(t)
		if n := len(pdfPage.FindAll(bytes.ReplaceAll(pdf, []byte("/Type /Pages"), nil), -1)); n != 2 {
			t.Errorf("%s: %d pages", name, n)
		}
		p.wait("!document.documentElement.classList.contains('printing')")
	}
}
