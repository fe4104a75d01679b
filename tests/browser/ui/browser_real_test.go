//go:build real

package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/ui"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/store"
	"github.com/tacho-bench/tacho/tests/browser/chrome"
)

// hostile is text a user may put into a name or message.
const hostile = `</script><script>window.hacked=1</script><img src=x onerror="window.hacked=2">'"&lt;`

// tab is a page in a test.
type tab struct {
	*chrome.Page
	t      testing.TB
	server *httptest.Server
}

// open opens the printed address of a server, and waits for the page without the token. The test fails if the page reports a problem or contacts
// another server.
func open(t testing.TB, b *chrome.Browser, server *httptest.Server, view chrome.View) *tab {
	t.Helper()
	p := must.Get(b.Open(server.URL+"/?token="+token, view))(t)
	must.Do(t, p.Wait("location.search === '' && document.readyState === 'complete'"))
	t.Cleanup(func() {
		if problems := p.Problems(); len(problems) > 0 {
			t.Errorf("the page complains: %.1000s", problems)
		}
		for _, url := range p.Requests() {
			if !strings.HasPrefix(url, server.URL+"/") {
				t.Errorf("the page asks for %.200s", url)
			}
		}
		_ = p.Close()
	})
	return &tab{p, t, server}
}

func eval[T any](p *tab, expression string) (out T) {
	p.t.Helper()
	must.Do(p.t, p.Eval(expression, &out))
	return out
}

// wait waits until an expression is true in the page.
func (p *tab) wait(condition string) {
	p.t.Helper()
	if err := p.Wait(condition); err != nil {
		p.t.Fatalf("%v: %q; the page says %.600s", err, eval[string](p, "document.getElementById('status')?.textContent || ''"), eval[string](p, "document.body.innerText"))
	}
}

func (p *tab) click(selector string) {
	p.t.Helper()
	must.Do(p.t, p.ClickOn(selector))
}

func (p *tab) text(selector string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// shows waits until the list contains exactly these runs.
func (p *tab) shows(names ...string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("[...document.querySelectorAll('#runs tbody tr .name a')].map((e) => e.textContent).join() === %q", strings.Join(names, ",")))
}

// TestRealInABrowser tests all features in one browser and one folder.
func TestRealInABrowser(t *testing.T) {
	b := must.Get(chrome.Start(context.Background()))(t)
	t.Cleanup(func() { _ = b.Close() })
	folder := t.TempDir()
	base, slow := keep(t, folder, kept{label: "base", model: "llama", levels: 2}), keep(t, folder, kept{label: "slow", model: "qwen", levels: 2, slow: 5 * ms})
	bad := keep(t, folder, kept{label: strings.Repeat(hostile, 20), model: strings.Repeat(hostile, 60_000)}) // about 5 MB
	must.Do(t, os.Rename(bad, filepath.Join(folder, `<img src=x onerror=window.hacked=3>'"`)))
	running := keep(t, folder, kept{label: "now", cut: true})
	other := keep(t, folder, kept{label: "other", rate: 3})
	runs(t, running, snapshot(4, hostile))
	must.Do(t, os.CopyFS(filepath.Join(folder, "seeds"), os.DirFS("../../../testdata/seeds")))
	server := serve(t, ui.Options{Dir: folder})
	desk := chrome.View{Width: 1600, Height: 1000}
	p := open(t, b, server, desk)
	p.wait("document.querySelectorAll('#runs tbody tr').length === 9")

	t.Run("hostile names are text", func(t *testing.T) {
		if eval[bool](p, "'hacked' in window") {
			t.Error("the page runs what a name says")
		}
		if n := eval[int](p, "document.querySelectorAll('script, img, object, link').length"); n != 2 {
			t.Errorf("%d elements that load or run, want its own two", n)
		}
		if said := p.text("#runs"); !strings.Contains(said, "<script>window.hacked=1</script>") || !strings.Contains(said, "<img src=x onerror=window.hacked=3>") || len(said) > 20_000 {
			t.Errorf("%d characters: %.200s", len(said), said)
		}
	})
	t.Run("sort", func(t *testing.T) { testSort(t, p) })
	t.Run("empty folder", func(t *testing.T) { testEmptyFolder(t, b) })
	t.Run("trend", func(t *testing.T) { testTrend(t, b) })
	t.Run("verdicts", func(t *testing.T) { testVerdicts(t, b) })
	t.Run("search", func(t *testing.T) {
		search(p, "llama base")
		p.shows(filepath.Base(base))
		search(p, "nothing is called this")
		p.wait("document.getElementById('runs').innerText.includes('No run matches')")
		search(p, "")
	})
	t.Run("live", func(t *testing.T) { testLive(t, b, server, running, desk) })
	t.Run("compare", func(t *testing.T) { testCompare(t, p, slow, other) })
	t.Run("notes", func(t *testing.T) { testNotes(t, p, base) })
	t.Run("delete", func(t *testing.T) { testDelete(t, p, base) })
	t.Run("looks", func(t *testing.T) { testLooks(t, b, server) })
}

func search(p *tab, words string) {
	p.t.Helper()
	must.Do(p.t, p.Eval(fmt.Sprintf("(() => { const e = document.getElementById('search'); e.value = %q; e.dispatchEvent(new Event('input')); return 0 })()", words), nil))
}

func idOf(dir string) string {
	return fmt.Sprintf("ui.items.find((it) => it.path === %q).id", filepath.Base(dir))
}

// testLive checks that a running benchmark is shown live, and its report after it
// finishes.
func testLive(t *testing.T, b *chrome.Browser, server *httptest.Server, dir string, view chrome.View) {
	p := open(t, b, server, view)
	p.wait("document.querySelector('.state.running')")
	must.Do(t, p.Eval("location.hash = 'run=' + "+idOf(dir)+"; 0", nil))
	p.wait("document.querySelectorAll('#live [data-line]').length > 5")
	values := eval[[]float64](p, `JSON.parse(document.querySelector('[data-line="TTFT (ms) p50"]').dataset.values)`)
	if len(values) != 4 || values[0] != 25 || values[3] != 28 {
		t.Errorf("TTFT is drawn as %v", values)
	}
	for _, want := range []string{"20 req/s", "18 req/s of 20", "150 tok/s", "3 requests", "ms, p99 60 ms", "TTFT p50", "5 ms, p99 9 ms"} {
		if said := p.text("#live"); !strings.Contains(strings.Join(strings.Fields(said), " "), want) {
			t.Errorf("the live view has no %q: %.600s", want, said)
		}
	}
	if said := p.text("#live"); !strings.Contains(said, "503") || !strings.Contains(said, "<script>window.hacked=1</script>") || eval[bool](p, "'hacked' in window") {
		t.Errorf("%.500s", said)
	}
	runs(t, dir, snapshot(6, "fine"))
	p.wait(`JSON.parse(document.querySelector('[data-line="TTFT (ms) p50"]').dataset.values).length === 6`)
	if !eval[bool](p, "document.getElementById('page').hidden") {
		t.Error("a report is shown of a run that goes on")
	}
	run, err := archive.Open(dir, nil) // the run finishes
	must.Do(t, err)
	must.Do(t, atomicfile.Write(filepath.Join(dir, store.SummaryFile), []byte(`{"schema":1,"runs":[`+quotedRun(t, run)+`]}`)))
	must.Do(t, os.Remove(filepath.Join(dir, store.LiveFile)))
	p.wait("document.getElementById('live').hidden && !document.getElementById('page').hidden && document.getElementById('loading').hidden")
	if said := p.text("#run-bar"); !strings.Contains(said, "Delete") {
		t.Errorf("after its end: %q", said)
	}
}

// testVerdicts checks that the list, the comparison and the live view mark INVALID levels and simulated runs.
func testVerdicts(t *testing.T, b *chrome.Browser) {
	folder := t.TempDir()
	mixed := keep(t, folder, kept{label: "mixed", model: "llama", levels: 3, failing: 3, sim: "vllm-8b-h100"})
	bad := keep(t, folder, kept{label: "bad", levels: 2, failing: 1})
	now := keep(t, folder, kept{label: "now", cut: true, sim: "vllm-8b-h100"})
	runs(t, now, snapshot(4, "fine"))
	p := open(t, b, serve(t, ui.Options{Dir: folder}), chrome.View{Width: 1600, Height: 1000})
	p.wait("document.querySelectorAll('#runs tbody tr').length === 3")
	chips := func(dir, within string) string {
		return eval[string](p, fmt.Sprintf("[...document.querySelector(%q).querySelectorAll('.badge')].map((e) => e.innerText).join('; ')", fmt.Sprintf(within, eval[string](p, idOf(dir)))))
	}
	const row = `#runs tr[data-run="%s"]`
	if got := chips(mixed, row); got != "✓ VALID; ! 1 of 3 levels INVALID; ≈ SIMULATED" && got != "! DEGRADED; ! 1 of 3 levels INVALID; ≈ SIMULATED" {
		t.Errorf("mixed verdicts: %q", got)
	}
	if got := chips(bad, row); got != "! INVALID" {
		t.Errorf("all levels INVALID: %q", got)
	}
	marks := eval[[2]int](p, fmt.Sprintf("(() => { const e = document.querySelector('%s svg.spark'); return [e.querySelectorAll('.cross').length, e.querySelector('.curve').getAttribute('d').split(/[ML]/).length - 1] })()", fmt.Sprintf(row, eval[string](p, idOf(mixed)))))
	if marks != [2]int{1, 2} {
		t.Errorf("the small chart of three levels has %d crosses and a line of %d points", marks[0], marks[1])
	}
	must.Do(t, p.Eval("location.hash = 'run=' + "+idOf(now)+"; 0", nil))
	p.wait("!document.getElementById('live').hidden && document.getElementById('run-bar').innerText.includes('≈ SIMULATED')")
	must.Do(t, p.Eval("location.hash = 'run=' + "+idOf(mixed)+"; 0", nil))
	p.wait("document.title === 'llama · 10 to 30 req/s · vllm – tacho'")
	must.Do(t, p.Eval("location.hash = 'compare=' + ["+idOf(mixed)+", "+idOf(bad)+"]; 0", nil))
	p.wait("document.querySelector('#run-bar .sides')?.innerText.includes('SIMULATED')")
	if said := p.text("#run-bar .sides"); !strings.Contains(said, "Base: mixed") || strings.Count(said, "SIMULATED") != 1 {
		t.Errorf("the compared runs: %q", said)
	}
}

// testCompare checks that selected runs are compared in words and on the same axes.
func testCompare(t *testing.T, p *tab, slow, other string) {
	if !eval[bool](p, "document.getElementById('compare-button').disabled") {
		t.Error("nothing is ticked, and can be compared")
	}
	for n, name := range []string{"-slow", "-base"} { // the older run is the base in any order
		search(p, name)
		p.click("#runs tbody input")
		p.wait(fmt.Sprintf("ui.ticked.size === %d", n+1))
	}
	search(p, "")
	p.click("#compare-button")
	p.wait("document.querySelectorAll('#comparison tbody tr').length > 10")
	tpot := eval[float64](p, "+[...document.querySelectorAll('#comparison tbody tr')].find((e) => e.innerText.startsWith('TPOT mean (ms)')).querySelector('[data-delta]').dataset.delta")
	if said := p.text("#comparison"); tpot < 4.9 || tpot > 5.1 || !strings.HasPrefix(said, "slow is worse than base in ") || strings.Contains(said, "ttft.mean") {
		t.Errorf("5 ms more are %v: %.300s", tpot, said)
	}
	testForest(t, p)
	if !eval[bool](p, "document.getElementById('page').hidden") {
		t.Error("the charts are shown below the differences, with a second scroll bar")
	}
	p.click("[data-tab=charts]")
	p.wait("!document.getElementById('page').hidden && document.getElementById('loading').hidden") // the frame is loaded
	if over := eval[int](p, "document.documentElement.scrollHeight - innerHeight"); over > 0 {
		t.Errorf("beside the scroll bar of the charts, the window scrolls by %d pixels", over)
	}
	page := eval[string](p, "fetch(document.getElementById('page').src).then((r) => r.text())")
	if !strings.Contains(page, `"label":"base"`) || !strings.Contains(page, `"label":"slow"`) {
		t.Error("the page of both lacks one")
	}
	must.Do(p.t, p.Eval("location.hash = 'compare=' + ["+idOf(slow)+", "+idOf(other)+"]; 0", nil))
	p.wait("document.getElementById('comparison').innerText.includes('The runs have no level in common')")
	must.Do(p.t, p.Eval("location.hash = ''; 0", nil))
}

func testNotes(t *testing.T, p *tab, dir string) {
	search(p, "-base")
	p.click("#runs tbody .name a")
	p.wait("document.getElementById('notes-button') && document.getElementById('loading').hidden") // a click beside a frame that loads was not acknowledged once
	p.click("#notes-button")
	must.Do(t, p.Eval(fmt.Sprintf("document.getElementById('note-tags').value = 'driver-550, good'; document.getElementById('note-text').value = %q; 0", hostile), nil))
	p.click("#save-button")
	p.wait("document.querySelector('#run-bar .note')")
	if said := p.text("#run-bar"); !strings.Contains(said, "<script>window.hacked=1</script>") || !strings.Contains(said, "driver-550") || eval[bool](p, "'hacked' in window") {
		t.Errorf("%.300s", said)
	}
	must.Do(t, p.Eval("location.hash = ''; 0", nil))
	search(p, "")
	p.click(`#tags [data-tag="good"]`)
	p.shows(filepath.Base(dir))
	p.click(`#tags [data-tag="good"]`)
}

// testDelete checks that a run is deleted only after confirmation.
func testDelete(t *testing.T, p *tab, dir string) {
	search(p, "-base")
	p.click("#runs tbody .name a")
	p.wait("document.getElementById('delete-button') && document.getElementById('loading').hidden")
	p.click("#delete-button")
	p.wait("document.getElementById('ask').open")
	if said := p.text("#ask"); !strings.Contains(said, filepath.Base(dir)) || !strings.Contains(said, "240 requests") {
		t.Errorf("it asks %q", said)
	}
	p.click("#ask-no")
	if _, err := os.Stat(dir); err != nil {
		t.Fatal("deleted after a no:", err)
	}
	p.click("#delete-button")
	p.click("#ask-yes")
	p.wait("!document.getElementById('list-view').hidden")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("it is still there:", err)
	}
	p.wait("document.querySelectorAll('#runs tbody tr').length === 0") // with this name
	p.wait("document.getElementById('status').textContent === 'Deleted.'")
	search(p, "")
}

// testLooks checks the list on phone and desktop, in light and dark, and without a mouse.
func testLooks(t *testing.T, b *chrome.Browser, server *httptest.Server) {
	for _, view := range []chrome.View{{Width: 390, Height: 844}, {Width: 1600, Height: 1000, Dark: true}, {Width: 1600, Height: 1000}} {
		p := open(t, b, server, view)
		p.wait("document.querySelectorAll('#runs tbody tr').length > 3")
		if over := eval[int](p, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("at %d it is %d pixels too wide", view.Width, over)
		}
		if bright := eval[float64](p, "sumOf(rgb(getComputedStyle(document.body).backgroundColor), (v) => v)"); (bright < 384) != view.Dark {
			t.Errorf("at %d the brightness is %v", view.Width, bright)
		}
		if faint := eval[[]string](p, contrast); len(faint) > 0 {
			t.Errorf("at %d, text with too little contrast: %q", view.Width, faint)
		}
		unnamed := eval[[]string](p, `[...document.querySelectorAll('button, input, a, iframe')].filter((e) => !(e.getAttribute('aria-label') || e.title || e.textContent.trim() || e.labels?.[0]?.textContent.trim())).map((e) => e.outerHTML.slice(0, 80))`)
		if len(unnamed) > 0 {
			t.Errorf("without a name: %q", unnamed)
		}
		reached := map[string]bool{}
		for range 60 {
			must.Do(t, p.Key("Tab", false))
			reached[eval[string](p, "(() => { const e = document.activeElement; return e.id || (e.dataset.tick ? 'tick' : e.tagName) })()")] = true
		}
		wants := []string{"home", "search", "tick", "A"}
		if view.Width > 1000 {
			wants = append(wants, "tick-all", "BUTTON")
		} else {
			wants = append(wants, "sort")
		}
		for _, want := range wants {
			if !reached[want] {
				t.Errorf("the tabulator never reaches %s: %v", want, reached)
			}
		}
	}
}

func quotedRun(t testing.TB, run *outcome.Run) string {
	t.Helper()
	return string(must.Get(json.Marshal(run))(t))
}
