//go:build real

package page_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/page"
	"github.com/tacho-bench/tacho/stat"
	"github.com/tacho-bench/tacho/tests/browser/chrome"
)

var (
	chromium *chrome.Browser
	startErr error
	start    sync.Once
)

func TestMain(m *testing.M) {
	code := m.Run()
	if chromium != nil {
		_ = chromium.Close()
	}
	os.Exit(code)
}

var desk = chrome.View{Width: 1600, Height: 1000}

// open writes a page of runs to disk and opens it.
func open(t testing.TB, view chrome.View, hash string, runs ...outcome.Run) *tab {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	must.Do(t, os.WriteFile(path, write(t, runs...), 0o600))
	return openFile(t, view, "file://"+path+hash)
}

func openFile(t testing.TB, view chrome.View, address string) *tab {
	t.Helper()
	start.Do(func() { chromium, startErr = chrome.Start(context.Background()) })
	if startErr != nil {
		t.Fatal(startErr)
	}
	p := must.Get(chromium.Open(address, view))(t)
	t.Cleanup(func() {
		if problems := p.Problems(); len(problems) > 0 {
			t.Errorf("the page complains: %s", problems)
		}
		bare, _, _ := strings.Cut(address, "#")
		for _, url := range p.Requests() {
			own := strings.HasPrefix(url, bare) || strings.HasPrefix(url, "data:image/") || strings.HasPrefix(url, "blob:null/")
			if !own { // saved charts are requests of the page itself
				t.Errorf("the page asks for %.200s", url)
			}
		}
		_ = p.Close()
	})
	return &tab{p, t}
}

// tab is a page in a test.
type tab struct {
	*chrome.Page
	t testing.TB
}

// eval returns the value of an expression in the page.
func eval[T any](p *tab, expression string) (out T) {
	p.t.Helper()
	must.Do(p.t, p.Eval(expression, &out))
	return out
}

// wait waits until an expression is true in the page.
func (p *tab) wait(format string, args ...any) {
	p.t.Helper()
	if err := p.Wait(fmt.Sprintf(format, args...)); err != nil {
		p.t.Fatalf("%v; the page says %.600q", err, eval[string](p, "document.body.innerText"))
	}
}

func (p *tab) do(expression string) {
	p.t.Helper()
	must.Do(p.t, p.Eval(expression+"; 0", nil))
}

func (p *tab) keys(shift bool, names ...string) {
	p.t.Helper()
	for _, name := range names {
		must.Do(p.t, p.Key(name, shift))
	}
}

// chart returns the selector of a figure.
func chart(name string) string { return fmt.Sprintf(`[data-figure=%q]`, name) }

// values returns the values of the marks that match a selector.
func (p *tab) values(selector string) []float64 {
	p.t.Helper()
	return eval[[]float64](p, fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) => +e.dataset.value)`, selector))
}

// place returns the center and height of an element in the window.
func (p *tab) place(selector string) (x, y, height float64) {
	p.t.Helper()
	box := eval[[3]float64](p, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({ block: 'center' }); const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2, b.height] })()`, selector))
	return box[0], box[1], box[2]
}

func (p *tab) click(selector string) {
	p.t.Helper()
	must.Do(p.t, p.ClickOn(selector))
}

func (p *tab) mouse(m chrome.Mouse) {
	p.t.Helper()
	must.Do(p.t, p.Mouse(m))
}

// saved returns the file saved by a button of a chart's menu.
func (p *tab) saved(name, button, file string) []byte {
	p.t.Helper()
	p.click(chart(name) + " .menu summary")
	p.click(chart(name) + " [data-do=" + button + "]")
	return must.Get(chromium.Downloaded(file))(p.t)
}

// TestRealMarksAreTheRecords checks that every chart exists and draws the values of the
// records.
func TestRealMarksAreTheRecords(t *testing.T) {
	lists := levels()
	run := measured(about, lists...)
	p := open(t, desk, "", run)
	hidden := eval[[]string](p, `figures.filter((f) => f.el.hidden).map((f) => f.name)`)
	if want := []string{"ITL over load", "E2EL over load"}; !slices.Equal(hidden, want) { // shown only as the main chart
		t.Errorf("charts without data: %q", hidden)
	}
	var rps, ttft, gpu []float64
	for i := range run.Levels {
		s := &run.Levels[i].Summary
		rps = append(rps, s.Throughput.RequestsPerS)
		ttft = append(ttft, s.Dist(metric.TTFT).Stats.Median)
		gpu = append(gpu, s.Throughput.OutputTokensPerS/2)
	}
	for selector, want := range map[string][]float64{chart("Throughput") + " .pick": rps, chart("Pareto") + " .pick": gpu} {
		if got := p.values(selector); !slices.EqualFunc(got, want, near) {
			t.Errorf("%s draws %v, want %v", selector, got, want)
		}
	}
	for i, v := range p.values(chart("TTFT over load") + " .pick")[:3] {
		if !near(v, ttft[i]) {
			t.Errorf("TTFT p50 at level %d is drawn as %v, want %v", i, v, ttft[i])
		}
	}
	for _, m := range metric.Classic {
		picked := eval[int](p, "state.picked[0]")
		stats := run.Levels[picked].Summary.Dist(m).Stats
		want := []float64{stats.Median, stats.Percentile(90), stats.Percentile(99)}
		if got := p.values(chart(strings.ToUpper(m.Name)) + " .percentile"); !slices.EqualFunc(got, want, near) {
			t.Errorf("%s: percentiles %v, want %v", m.Name, got, want)
		}
	}
	var parts []float64
	for i := range run.Levels {
		for _, part := range run.Levels[i].Summary.Where.All.Parts {
			if part.Millis > 0 {
				parts = append(parts, part.Millis)
			}
		}
	}
	if got := p.values(chart("Where the time goes") + " .part"); len(parts) == 0 || !slices.EqualFunc(got, parts, near) {
		t.Errorf("time is drawn as %v, want %v", got, parts)
	}
	checkTime(p, run)
	checkSteady(p, run)
	checkPlace(p)
}

// checkSteady compares the steady-state text of the page with the summary.
func checkSteady(p *tab, run outcome.Run) {
	p.t.Helper()
	w := run.Levels[eval[int](p, "state.picked[0]")].Summary.Steady.Window
	if w == nil {
		p.t.Fatal("the picked level was never in balance: this shows nothing")
	}
	if got := p.values(chart("Over time") + " .steady"); len(got) != 1 || !near(got[0], w.FromS) {
		p.t.Errorf("in balance from %v, want %v", got, w.FromS)
	}
	said := eval[string](p, "document.getElementById('level-line').innerText + document.getElementById('behind-table').innerText")
	for _, want := range []string{fmt.Sprintf("in the steady window from %s", eval[string](p, fmt.Sprintf("num(%v)", w.FromS))), "Little’s law"} {
		if !strings.Contains(said, want) {
			p.t.Errorf("the page does not say %q", want)
		}
	}
}

// checkTime compares the lines over time with the records of the selected level.
func checkTime(p *tab, run outcome.Run) {
	p.t.Helper()
	lines := eval[map[string][]*float64](p, `Object.fromEntries([...document.querySelectorAll('[data-line]')].map((e) => [e.dataset.line, JSON.parse(e.dataset.values)]))`)
	width := eval[float64](p, "picked(first()).p.bins.width_s")
	picked := eval[int](p, "state.picked[0]")
	for _, name := range []string{"requests/s due", "requests/s served", "requests in flight", "requests running (server)", "TTFT, ms p50", "ITL, ms p99", "output tokens/s received", "KV cache, % in use (server)", "GPU, % busy", "power, W all GPUs", "client send lag, ms p99"} {
		if len(lines[name]) == 0 {
			p.t.Errorf("no line %q over time", name)
		}
	}
	byBin := map[int][]float64{}
	for r := range run.Records() {
		if r.Stage == picked && r.OK() {
			at := int(r.Sent.Seconds() / width)
			byBin[at] = append(byBin[at], float64(r.First()-r.Sent)/1e6)
		}
	}
	for at, values := range byBin {
		if got := lines["TTFT, ms p50"][2*at]; got == nil || !near(*got, stat.New(values).Median()) { // a step has two points
			p.t.Errorf("TTFT p50 in piece %d: got %v, want %v", at, got, stat.New(values).Median())
		}
	}
}

// checkPlace checks that the position of a mark agrees with the axis.
func checkPlace(p *tab) {
	p.t.Helper()
	p.do(`set('log', false)`)
	type mark struct{ V, Y float64 }
	marks := eval[[]mark](p, fmt.Sprintf(`[...document.querySelectorAll('%s .pick')].map((e) => ({ V: +e.dataset.value, Y: +e.getAttribute('cy') }))`, chart("TTFT over load")))
	zero := eval[float64](p, fmt.Sprintf(`+document.querySelector('%s .axis-line').getAttribute('y1')`, chart("TTFT over load")))
	for _, m := range marks[1:] {
		if want := (zero - m.Y) / (zero - marks[0].Y); math.Abs(m.V/marks[0].V-want) > 0.03*want {
			p.t.Errorf("a mark of %v stands %v times as high as one of %v", m.V, want, marks[0].V)
		}
	}
}

// TestRealSeveralRuns checks that a page of several runs draws them on the same axes and
// can hide one.
func TestRealSeveralRuns(t *testing.T) {
	other := about
	other.Name, other.Label, other.Model = "other", "plain", "llama-3.1-8b"
	a, b := measured(about, levels()...), measured(other, requests(0, 50, 10, 0), requests(1, 100, 20, 0))
	p := open(t, desk, "", a, b)
	if n := len(p.values(chart("Throughput") + " .pick")); n != 5 {
		t.Errorf("%d marks of five levels", n)
	}
	text := eval[string](p, "document.body.innerText")
	for _, word := range []string{"tuned", "plain", "In comparison"} {
		if !strings.Contains(text, word) {
			t.Errorf("the page does not say %q", word)
		}
	}
	p.click("[data-run='1']") // hides the run
	p.wait("document.querySelectorAll('%s .pick').length === 3", chart("Throughput"))
	// The runs have different kinds of load, so x becomes a quantity both have.
	for i := range b.Levels {
		b.Levels[i].Name, b.Levels[i].Rate = fmt.Sprintf("--max-concurrency %d", 8*(i+1)), 0
	}
	p = open(t, desk, "", a, b)
	if kind := eval[string](p, "xKind()"); kind != "flight" {
		t.Errorf("the axis is %q", kind)
	}
}

// TestRealSeedsAreDrawn checks that reports of other tools are drawn with the numbers of
// their text.
func TestRealSeedsAreDrawn(t *testing.T) {
	const dir = "../../../testdata/seeds"
	runs := must.Get(archive.All(dir, nil))(t)
	p := open(t, desk, "", runs...)
	for k, file := range []string{"000_902df92d1b3a4732.txt", "001_8b5b9f497242493f.txt"} { // vLLM and TGI
		text := must.Get(os.ReadFile(filepath.Join(dir, file)))(t)
		numbers := func(label string) (out []float64) {
			for _, found := range regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(label)+` +([\d.]+)`).FindAllStringSubmatch(string(text), -1) {
				v, _ := strconv.ParseFloat(found[1], 64)
				out = append(out, v)
			}
			return out
		}
		drawn := func(chart string, each, nth int) (out []float64) {
			marks := eval[[][2]float64](p, fmt.Sprintf(`[...document.querySelectorAll('%s .pick')].map((e) => [e.dataset.pick, +e.dataset.value]).filter(([key]) => key.startsWith('%d:')).map(([key, v]) => [+key.split(':')[1], v])`, chart, k))
			slices.SortStableFunc(marks, func(a, b [2]float64) int { return int(a[0] - b[0]) })
			for i := nth; i < len(marks); i += each {
				out = append(out, marks[i][1])
			}
			return out
		}
		prompts := numbers("Successful requests:")
		if len(prompts) < 13 || prompts[11] != 2048 {
			t.Fatalf("%s has levels of %v prompts", file, prompts)
		}
		for name, pair := range map[string][2][]float64{
			"prompts":    {eval[[]float64](p, fmt.Sprintf("RUNS[%d].levels.map(loadValue)", k)), prompts},
			"throughput": {drawn(chart("Throughput"), 1, 0), numbers("Request throughput (req/s):")},
			"TTFT p50":   {drawn(chart("TTFT over load"), 2, 0), numbers("Median TTFT (ms):")},
			"TTFT p99":   {drawn(chart("TTFT over load"), 2, 1), numbers("P99 TTFT (ms):")},
			"TPOT p50":   {drawn(chart("TPOT over load"), 2, 0), numbers("Median TPOT (ms):")},
			"Pareto":     {drawn(chart("Pareto"), 1, 0), numbers("Output token throughput (tok/s):")},
		} {
			if !slices.Equal(pair[0], pair[1]) {
				t.Errorf("%s: %s is drawn as %v, the text has %v", file, name, pair[0], pair[1])
			}
		}
	}
	if said := eval[string](p, "document.getElementById('level-line').innerText"); !strings.Contains(said, "tgi at burst of 2,048: requests/s served 1.97 × as many (not tested)") {
		t.Errorf("it compares: %q", said)
	}
}

func TestRealPicking(t *testing.T) {
	p := open(t, desk, "#level=10", measured(about, levels()...))
	if i := eval[int](p, "state.picked[0]"); i != 0 {
		t.Fatalf("level %d is picked", i)
	}
	const title = "document.getElementById('h-level').textContent.startsWith('At %d requests/s')"
	p.click(chart("Throughput") + " .pick:nth-of-type(3)")
	p.wait(title, 30)
	p.do(`document.querySelector('input[data-pick="0:1"]').focus(); document.querySelector('input[data-pick="0:1"]').click()`) // selected in the table
	p.wait(title, 20)
	if said := eval[string](p, "document.getElementById('failures').innerText"); !strings.Contains(said, "status 503") {
		t.Errorf("failures: %q", said)
	}
	p.click(`.seg[data-key=shape] button:nth-of-type(3)`)
	p.wait("document.querySelector('%s .bar')", chart("ITL"))
	counts := p.values(chart("ITL") + " .bar")
	n := 0.0
	for _, v := range counts {
		n += v
	}
	if want := eval[float64](p, "picked(first()).itl.n"); n == 0 || n > want || n < 0.9*want {
		t.Errorf("the histogram has %v values of %v", n, want)
	}
}

// TestRealTimeline checks zooming both axes with keys, wheel and buttons, and the tooltip
// under the pointer.
func TestRealTimeline(t *testing.T) {
	p := open(t, desk, "#level=20", measured(about, levels()...))
	canvas := chart("Timeline of requests") + " canvas"
	spans := func() [2]float64 { return eval[[2]float64](p, "[view.t1 - view.t0, view.r1 - view.r0]") }
	const timeSpan, rowSpan = "view.t1 - view.t0", "view.r1 - view.r0"
	whole := spans()
	x, y, height := p.place(canvas)
	p.click(canvas)
	p.keys(false, "w")
	p.wait("%s < %v && %s === %v", timeSpan, whole[0], rowSpan, whole[1])
	p.keys(true, "W")
	p.wait("%s < %v", rowSpan, whole[1])
	before := spans()
	p.mouse(chrome.Mouse{Kind: "mouseWheel", X: x, Y: y, Wheel: -200})
	p.wait("%s < %v || %[1]s <= 3", timeSpan, before[0])
	p.mouse(chrome.Mouse{Kind: "mouseWheel", X: x, Y: y, Wheel: -200, Shift: true})
	p.wait("%s < %v || %[1]s <= 3", rowSpan, before[1])
	p.keys(false, "0")
	p.wait("%s === %v && %s === %v", timeSpan, whole[0], rowSpan, whole[1])
	p.click(chart("Timeline of requests") + " [data-zoom='0.6']")
	p.wait("%s < %v && %s < %v", timeSpan, whole[0], rowSpan, whole[1])
	p.click(chart("Timeline of requests") + " [data-zoom='0']")
	p.wait("%s === %v && %s === %v", timeSpan, whole[0], rowSpan, whole[1])
	// A failure is drawn in its own colour, and its tooltip shows the reason.
	place := eval[[2]float64](p, `(() => { const q = rowsOf(timelineLevel()).find((v) => v.error), b = document.querySelector('canvas').getBoundingClientRect();
		return [b.x + linear(view.t0, view.t1, PAD.left, b.width - PAD.right)(q.end), b.y + linear(view.r0, view.r1, PAD.top, b.height - PAD.bottom)(rowOf(q) + 0.5)] })()`)
	p.mouse(chrome.Mouse{Kind: "mouseMoved", X: place[0], Y: place[1]})
	p.wait("/503|busy/.test(document.getElementById('tip').innerText)")
	red := eval[int](p, `(() => { const c = document.querySelector('canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, want = rgb(ink('bad'));
		let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] === want[0] && d[i + 1] === want[1] && d[i + 2] === want[2]) n++; return n })()`)
	if red < 10*8 || height < 100 {
		t.Errorf("%d red pixels of ten failures", red)
	}
}

// TestRealHoverAndKeyboard checks that charts show values under the pointer and with the
// arrow keys, and that screen readers get tables.
func TestRealHoverAndKeyboard(t *testing.T) {
	p := open(t, desk, "", measured(about, levels()...))
	const tip = "document.getElementById('tip')"
	x, y, _ := p.place(chart("Over time") + " .plot")
	p.mouse(chrome.Mouse{Kind: "mouseMoved", X: x, Y: y})
	p.wait("!%s.hidden && %[1]s.innerText.includes('TTFT p50')", tip)
	p.mouse(chrome.Mouse{Kind: "mouseMoved", X: 2, Y: 2})
	p.wait("%s.hidden", tip)
	p.do(`document.querySelector('[data-figure="TTFT"] .plot').focus()`)
	p.keys(false, "ArrowRight")
	p.wait("!%s.hidden && %[1]s.innerText.includes('at or below')", tip)
	p.keys(false, "Escape")
	p.wait("%s.hidden", tip)
	// From the top, the Tab key reaches every kind of control.
	p.do(`document.activeElement.blur(); scrollTo(0, 0)`)
	missing := []string{"theme-button", "summary", "abbr", "x", "pick", "canvas", "input", "button"}
	for presses := 0; len(missing) > 0; presses++ {
		if presses == 1000 { // more than the number of elements
			t.Fatalf("the tabulator never reaches %q", missing)
		}
		p.keys(false, "Tab")
		reached := eval[string](p, `(() => { const e = document.activeElement; return e.id || e.dataset.do || e.dataset.key || e.closest('.seg')?.dataset.key || e.tagName.toLowerCase() })()`)
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == reached })
	}
	p.do(`document.querySelector('[data-figure="Over time"] summary').focus()`)
	p.keys(false, "Enter", "Tab", "Enter") // the menu, its first button
	p.wait(`document.querySelectorAll('[data-figure="Over time"] .data tbody tr').length === picked(first()).p.bins.asked.length`)
	unnamed := eval[[]string](p, `[...document.querySelectorAll('button, summary, canvas, .plot[role=img], input')].filter((e) => !e.closest('figure[hidden]') && !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.[0]?.textContent.trim())).map((e) => e.outerHTML.slice(0, 80))`)
	if len(unnamed) > 0 {
		t.Errorf("without a name: %q", unnamed)
	}
}

// TestRealExport checks saving charts as images and tables.
func TestRealExport(t *testing.T) {
	run := measured(about, levels()...)
	p := open(t, desk, "#level=20", run)
	table, err := csv.NewReader(bytes.NewReader(p.saved("TTFT over load", "csv", "tacho-ttft-over-load.csv"))).ReadAll()
	if err != nil || len(table) != 4 || !slices.Equal(table[0][:3], []string{"run", "level", "TTFT over load p50"}) {
		t.Fatalf("%v %q", err, table)
	}
	stats := run.Levels[1].Summary.Dist(metric.TTFT).Stats
	for i, want := range []float64{stats.Median, *stats.MedianInterval.Low, *stats.MedianInterval.High} {
		if got, _ := strconv.ParseFloat(table[2][2+i], 64); !near(got, want) {
			t.Errorf("p50 and its interval are saved as %q", table[2])
		}
	}
	drawing := string(p.saved("Pareto", "svg", "tacho-pareto.svg"))
	if !strings.HasPrefix(drawing, "<svg") || !strings.Contains(drawing, "tokens/s per GPU") || strings.Count(drawing, "<circle") != 3 || strings.Contains(drawing, "var(--") {
		t.Errorf("the SVG is %.300s", drawing)
	}
	if drawing := string(p.saved("Timeline of requests", "svg", "tacho-timeline-of-requests.svg")); !strings.Contains(drawing, "data:image/png;base64,") {
		t.Errorf("the SVG of the timeline is %.300s", drawing)
	}
	for name, file := range map[string]string{"ITL": "tacho-itl.png", "Timeline of requests": "tacho-timeline-of-requests.png"} {
		picture := must.Get(png.Decode(bytes.NewReader(p.saved(name, "png", file))))(t)
		colours := map[color.Color]bool{}
		for x := range picture.Bounds().Dx() {
			for y := range picture.Bounds().Dy() {
				colours[picture.At(x, y)] = true
			}
		}
		if len(colours) < 8 {
			t.Errorf("%s has %d colours", file, len(colours))
		}
	}
	requests, err := csv.NewReader(bytes.NewReader(p.saved("Timeline of requests", "csv", "tacho-timeline-of-requests.csv"))).ReadAll()
	if err != nil || len(requests) != 121 {
		t.Fatalf("%v: %d lines of 120 requests", err, len(requests))
	}
	for _, line := range requests[1:] {
		if strings.HasPrefix(line[11], "=") {
			t.Errorf("a spreadsheet would run %q", line[11])
		}
	}
}

// TestRealHostileText checks that names and messages are always shown as text.
func TestRealHostileText(t *testing.T) {
	bad := about
	bad.Name, bad.Label, bad.Model, bad.Dataset, bad.GPUs, bad.Host, bad.Version, bad.Varies = hostile, hostile, hostile, hostile, hostile, hostile, hostile, hostile
	bad.URLs, bad.Args, bad.Metadata = []string{hostile}, []string{"bench", hostile}, []outcome.Field{{Name: hostile, Value: hostile}}
	run := measured(bad, requests(0, 60, 10, 5), requests(1, 60, 20, 5))
	run.Notes = []metric.Reason{{Code: "x", Severity: metric.Note, Text: hostile}}
	for i := range run.Levels {
		l := &run.Levels[i]
		l.Name, l.Value = hostile, hostile
		l.Summary.Verdict.Reasons = append(l.Summary.Verdict.Reasons, metric.Reason{Code: hostile, Severity: metric.Note, Text: hostile})
		for k := range l.Summary.Groups {
			l.Summary.Groups[k].By, l.Summary.Groups[k].Value = hostile, hostile+strconv.Itoa(k)
		}
		l.Summary.Finishes = []metric.FinishCount{{Reason: hostile, Requests: 1}}
	}
	p := open(t, desk, "", run, run)
	p.do(`for (const f of figures) act(f, 'data')`)
	for _, selector := range []string{"[data-tip]", "abbr", ".pick"} { // tooltips contain our own markup
		p.do(fmt.Sprintf(`for (const e of document.querySelectorAll(%q)) showTip(e.dataset.tip || '', 10, 10)`, selector))
	}
	if hacked := eval[bool](p, "'hacked' in window"); hacked {
		t.Error("the page runs what a name says")
	}
	if n := eval[int](p, "document.querySelectorAll('script, img, iframe, object, link').length"); n != 2 {
		t.Errorf("%d elements that load or run, want its own two", n)
	}
	if text := eval[string](p, "document.body.innerText"); !strings.Contains(text, "<script>window.hacked=1</script>") {
		t.Error("the words are not shown")
	}
}

// TestRealLooks checks the page on phone and desktop, in light and dark, and in print.
func TestRealLooks(t *testing.T) {
	runs := map[string][]outcome.Run{
		"sweep": {measured(about, levels()...)},
		"one":   {measured(outcome.About{Model: "tiny"}, requests(0, 40, 10, 4))},
		"two":   {measured(about, levels()...), measured(outcome.About{Name: "other", Varies: "request-rate"}, requests(0, 50, 10, 0))},
		"empty": {{Levels: []outcome.Level{{}}}},
		"none":  {{}},
	}
	for name, list := range runs {
		t.Run(name, func(t *testing.T) {
			p := open(t, chrome.View{Width: 390, Height: 900}, "", list...)
			checkLook(p, chrome.View{Width: 390, Height: 900})
			for _, view := range []chrome.View{{Width: 390, Height: 900, Dark: true}, {Width: 1600, Height: 900, Dark: true}, {Width: 1600, Height: 900}} {
				must.Do(t, p.Look(view))
				p.wait("innerWidth === %d && wide === innerWidth && matchMedia('(prefers-color-scheme: dark)').matches === %v", view.Width, view.Dark)
				p.do(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`) // the page is redrawn
				checkLook(p, view)
			}
		})
	}
	p := open(t, desk, "", runs["sweep"]...)
	if pdf, err := p.Print(); err != nil || !bytes.HasPrefix(pdf, []byte("%PDF")) || len(pdf) < 20_000 {
		t.Errorf("%v, %d bytes of PDF", err, len(pdf))
	}
}

// checkLook finds elements that do not fit a view.
func checkLook(p *tab, view chrome.View) {
	p.t.Helper()
	if over := eval[int](p, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
		p.t.Errorf("%+v: %d pixels wider than the window: %s", view, over, eval[string](p, `[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, .data')).map((e) => e.tagName + '.' + e.className).slice(0, 5).join()`))
	}
	if bright := eval[float64](p, "sumOf(rgb(getComputedStyle(document.body).backgroundColor), (v) => v)"); (bright < 384) != view.Dark {
		p.t.Errorf("%+v: brightness %v", view, bright)
	}
	small := eval[[]string](p, `[...document.querySelectorAll('body *')].filter((e) => e.textContent && !e.children.length && e.getClientRects().length && parseFloat(getComputedStyle(e).fontSize) < 9).map((e) => e.textContent)`)
	if len(small) > 0 {
		p.t.Errorf("%+v: too small to read: %q", view, small)
	}
	checkOverlap(p)
}

// checkOverlap finds axis labels that overlap.
func checkOverlap(p *tab) {
	p.t.Helper()
	const script = `[...document.querySelectorAll('.plot svg')].flatMap((svg) => {
		const all = [...svg.querySelectorAll('text:not(.halo)')].map((e) => [e.textContent, e.getBoundingClientRect()]).filter(([, b]) => b.width);
		return all.flatMap(([s, a], i) => all.slice(i + 1).filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4).map(([o]) => s + ' on ' + o + ' in ' + svg.closest('figure').dataset.figure)) })`
	if bad := eval[[]string](p, script); len(bad) > 0 {
		p.t.Errorf("labels overlap: %q", bad)
	}
}

// TestRealManyRequestsInBrowser opens and uses a page of many requests. It prints the
// times; only the size of the page is limited, because machines differ.
func TestRealManyRequestsInBrowser(t *testing.T) {
	n, times := 100_000, 1
	if given, err := strconv.Atoi(os.Getenv("REQUESTS")); err == nil { // make bench-page
		n, times = given, 5
	}
	path := filepath.Join(t.TempDir(), "report.html")
	html := write(t, large(n, 1000))
	if len(html) > page.MostBytes {
		t.Errorf("%d bytes", len(html))
	}
	must.Do(t, os.WriteFile(path, html, 0o600))
	for range times {
		p := openFile(t, desk, "file://"+path)
		drawn := eval[float64](p, `performance.getEntriesByType('navigation')[0].loadEventEnd`)
		paint := eval[float64](p, `(() => { const f = figures.find((v) => v.setUp), a = performance.now(); zoom('t', 0.5, 0.5); f.paint(f.plot.clientWidth); return performance.now() - a })()`)
		t.Logf("%d bytes, all drawn and ready after %.0f ms, a zoom takes %.0f ms", len(html), drawn, paint)
		if said := eval[string](p, `document.querySelector('[data-figure="Timeline of requests"]').innerText`); !strings.Contains(said, fmt.Sprintf("of %s requests: one in", eval[string](p, fmt.Sprintf("count(%d)", n)))) {
			t.Errorf("it does not say that it is a sample: %.300q", said)
		}
	}
}
