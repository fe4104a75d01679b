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

	"tacho/archive"
	"tacho/internal/wholefile"
	"tacho/outcome"
	"tacho/store"
	"tacho/tests/browser/chrome"
	"tacho/ui"
)

// hostile is what somebody may put where a name or a message goes.
const hostile = `</script><script>window.hacked=1</script><img src=x onerror="window.hacked=2">'"&lt;`

// A tab is a page in a test.
type tab struct {
	*chrome.Page
	t      testing.TB
	server *httptest.Server
}

// open opens a page of a server. It must complain of nothing, and ask nobody else.
func open(t testing.TB, b *chrome.Browser, server *httptest.Server, hash string, view chrome.View) *tab {
	t.Helper()
	p, err := b.Open(server.URL+"/"+hash, view)
	check(t, err)
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
	check(p.t, p.Eval(expression, &out))
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
	check(p.t, p.ClickOn(selector))
}

func (p *tab) text(selector string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// shows waits until the list has these runs and no other.
func (p *tab) shows(names ...string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("[...document.querySelectorAll('#runs tbody tr .name a')].map((e) => e.textContent).join() === %q", strings.Join(names, ",")))
}

// The whole of it, in one browser and one folder.
func TestRealInABrowser(t *testing.T) {
	b, err := chrome.Start(context.Background())
	check(t, err)
	t.Cleanup(func() { _ = b.Close() })
	folder := t.TempDir()
	base, slow := keep(t, folder, kept{label: "base", model: "llama", levels: 2}), keep(t, folder, kept{label: "slow", model: "qwen", levels: 2, slow: 5 * ms})
	bad := keep(t, folder, kept{label: strings.Repeat(hostile, 20), model: strings.Repeat(hostile, 60_000)}) // some 5 MB
	check(t, os.Rename(bad, filepath.Join(folder, `<img src=x onerror=window.hacked=3>'"`)))
	running := keep(t, folder, kept{label: "now", cut: true})
	other := keep(t, folder, kept{label: "other", rate: 3})
	runs(t, running, snapshot(4, hostile))
	check(t, os.CopyFS(filepath.Join(folder, "seeds"), os.DirFS("../../../testdata/seeds")))
	server := serve(t, ui.Options{Dir: folder})
	desk := chrome.View{Width: 1600, Height: 1000}
	p := open(t, b, server, "", desk)
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
	check(p.t, p.Eval(fmt.Sprintf("(() => { const e = document.getElementById('search'); e.value = %q; e.dispatchEvent(new Event('input')); return 0 })()", words), nil))
}

func idOf(dir string) string {
	return fmt.Sprintf("ui.items.find((it) => it.path === %q).id", filepath.Base(dir))
}

// A run that goes on is drawn as it stands, and its report comes when it is over.
func testLive(t *testing.T, b *chrome.Browser, server *httptest.Server, dir string, view chrome.View) {
	p := open(t, b, server, "", view)
	p.wait("document.querySelector('.state.running')")
	check(t, p.Eval("location.hash = 'run=' + "+idOf(dir)+"; 0", nil))
	p.wait("document.querySelectorAll('#live [data-line]').length > 5")
	values := eval[[]float64](p, `JSON.parse(document.querySelector('[data-line="TTFT, ms p50"]').dataset.values)`)
	if len(values) != 4 || values[0] != 25 || values[3] != 28 {
		t.Errorf("TTFT is drawn as %v", values)
	}
	if said := p.text("#live"); !strings.Contains(said, "503") || !strings.Contains(said, "<script>window.hacked=1</script>") || eval[bool](p, "'hacked' in window") {
		t.Errorf("%.500s", said)
	}
	runs(t, dir, snapshot(6, "fine"))
	p.wait(`JSON.parse(document.querySelector('[data-line="TTFT, ms p50"]').dataset.values).length === 6`)
	if !eval[bool](p, "document.getElementById('page').hidden") {
		t.Error("a report is shown of a run that goes on")
	}
	run, err := archive.Open(dir, nil) // now it is over
	check(t, err)
	check(t, wholefile.Write(filepath.Join(dir, store.SummaryFile), []byte(`{"schema":1,"runs":[`+quotedRun(t, run)+`]}`)))
	check(t, os.Remove(filepath.Join(dir, store.LiveFile)))
	p.wait("document.getElementById('live').hidden && !document.getElementById('page').hidden && document.getElementById('loading').hidden")
	if said := p.text("#run-bar"); !strings.Contains(said, "Delete") {
		t.Errorf("after its end: %q", said)
	}
}

// Ticked runs are compared, in words and on the same axes.
func testCompare(t *testing.T, p *tab, slow, other string) {
	if !eval[bool](p, "document.getElementById('compare-button').disabled") {
		t.Error("nothing is ticked, and can be compared")
	}
	for n, name := range []string{"-base", "-slow"} {
		search(p, name)
		p.click("#runs tbody input")
		p.wait(fmt.Sprintf("ui.ticked.size === %d", n+1))
	}
	search(p, "")
	p.click("#compare-button")
	p.wait("document.querySelectorAll('#comparison tbody tr').length > 10")
	tpot := eval[float64](p, "+[...document.querySelectorAll('#comparison tbody tr')].find((e) => e.innerText.startsWith('tpot.mean')).querySelector('[data-delta]').dataset.delta")
	if said := p.text("#comparison"); tpot < 4.9 || tpot > 5.1 || !strings.Contains(said, "worse") || !strings.Contains(said, filepath.Base(slow)) {
		t.Errorf("5 ms more are %v: %.300s", tpot, said)
	}
	p.wait("document.getElementById('loading').hidden") // the frame is there
	page := eval[string](p, "fetch(document.getElementById('page').src).then((r) => r.text())")
	if !strings.Contains(page, `"label":"base"`) || !strings.Contains(page, `"label":"slow"`) {
		t.Error("the page of both lacks one")
	}
	check(p.t, p.Eval("location.hash = 'compare=' + ["+idOf(slow)+", "+idOf(other)+"]; 0", nil))
	p.wait("document.getElementById('comparison').innerText.includes('They have no level in common')")
	check(p.t, p.Eval("location.hash = ''; 0", nil))
}

func testNotes(t *testing.T, p *tab, dir string) {
	search(p, "-base")
	p.click("#runs tbody .name a")
	p.wait("document.getElementById('notes-button')")
	p.click("#notes-button")
	check(t, p.Eval(fmt.Sprintf("document.getElementById('note-tags').value = 'driver-550, good'; document.getElementById('note-text').value = %q; 0", hostile), nil))
	p.click("#save-button")
	p.wait("document.querySelector('#run-bar .note')")
	if said := p.text("#run-bar"); !strings.Contains(said, "<script>window.hacked=1</script>") || !strings.Contains(said, "driver-550") || eval[bool](p, "'hacked' in window") {
		t.Errorf("%.300s", said)
	}
	check(t, p.Eval("location.hash = ''; 0", nil))
	search(p, "")
	p.click(`#tags [data-tag="good"]`)
	p.shows(filepath.Base(dir))
	p.click(`#tags [data-tag="good"]`)
}

// Nothing is deleted but what was asked for twice.
func testDelete(t *testing.T, p *tab, dir string) {
	search(p, "-base")
	p.click("#runs tbody .name a")
	p.wait("document.getElementById('delete-button')")
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
	p.wait("document.querySelectorAll('#runs tbody tr').length === 0") // of this name
	p.wait("document.getElementById('status').textContent === 'Deleted.'")
	search(p, "")
}

// The list reads well on a telephone and on a desk, light and dark, and needs no
// mouse.
func testLooks(t *testing.T, b *chrome.Browser, server *httptest.Server) {
	for _, view := range []chrome.View{{Width: 390, Height: 844}, {Width: 1600, Height: 1000, Dark: true}} {
		p := open(t, b, server, "", view)
		p.wait("document.querySelectorAll('#runs tbody tr').length > 3")
		if over := eval[int](p, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("at %d it is %d pixels too wide", view.Width, over)
		}
		if bright := eval[float64](p, "sumOf(rgb(getComputedStyle(document.body).backgroundColor), (v) => v)"); (bright < 384) != view.Dark {
			t.Errorf("at %d the brightness is %v", view.Width, bright)
		}
		unnamed := eval[[]string](p, `[...document.querySelectorAll('button, input, a, iframe')].filter((e) => !(e.getAttribute('aria-label') || e.title || e.textContent.trim() || e.labels?.[0]?.textContent.trim())).map((e) => e.outerHTML.slice(0, 80))`)
		if len(unnamed) > 0 {
			t.Errorf("without a name: %q", unnamed)
		}
		reached := map[string]bool{}
		for range 30 {
			check(t, p.Key("Tab", false))
			reached[eval[string](p, "(() => { const e = document.activeElement; return e.id || (e.dataset.tick ? 'tick' : e.tagName) })()")] = true
		}
		for _, want := range []string{"home", "search", "tick-all", "tick", "A"} {
			if !reached[want] {
				t.Errorf("the tabulator never reaches %s: %v", want, reached)
			}
		}
	}
}

func quotedRun(t testing.TB, run *outcome.Run) string {
	t.Helper()
	b, err := json.Marshal(run)
	check(t, err)
	return string(b)
}
