//go:build real

package ui_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/ui"
	"github.com/tacho-bench/tacho/store"
	"github.com/tacho-bench/tacho/tests/browser/chrome"
)

// contrast lists the texts with less contrast than WCAG 2.2 AA wants: 4.5, or 3 for large
// text. Disabled controls are exempt.
const contrast = `(() => {
  const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const parse = (s) => { const n = s.match(/[\d.]+/g).map(Number); return { rgb: n.slice(0, 3), a: n[3] ?? 1 }; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.a === 1) return c.rgb; } return [255, 255, 255]; };
  const found = new Set(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const e = n.parentElement, s = getComputedStyle(e), box = e.getBoundingClientRect();
    if (!n.data.trim() || !box.width || s.visibility === 'hidden' || e.closest(':disabled, script, style, .skip, option')) continue;
    const ink = parse(e.closest('svg') ? s.fill : s.color).rgb, [a, b] = [light(ink), light(behind(e))], ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(s.fontSize), large = size >= 24 || (size >= 18.66 && s.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) found.add(ratio.toFixed(2) + ' ' + n.data.trim().slice(0, 40));
  }
  return [...found];
})()`

// column returns the texts of a column of the list.
func column(p *tab, name string) []string {
	p.t.Helper()
	return eval[[]string](p, fmt.Sprintf("[...document.querySelectorAll('#runs tbody td[data-name=%q]')].map((e) => e.innerText.split('\\n')[0])", name))
}

// testSort checks that every sortable column sorts in both directions, with the keyboard.
func testSort(t *testing.T, p *tab) {
	labels := func() string {
		return strings.Join(eval[[]string](p, "[...document.querySelectorAll('#runs tbody tr')].map((e) => itemOf(e.dataset.run).about.label).filter((l) => ['base', 'slow', 'other'].includes(l))"), " ")
	}
	if got := labels(); got != "other slow base" {
		t.Errorf("at first, the list has %q, want the latest first", got)
	}
	for _, c := range []struct{ key, up, down string }{
		{"started", "base slow other", "other slow base"},
		{"run", "base slow other", "other slow base"}, // names begin with the time
		{"rps", "other slow base", "base slow other"},
	} {
		for range 2 {
			must.Do(t, p.Eval(fmt.Sprintf("document.querySelector('[data-sort=%s]').focus()", c.key), nil))
			must.Do(t, p.Key("Enter", false))
			p.wait(fmt.Sprintf("document.querySelector('th[aria-sort] button')?.dataset.sort === %q && document.activeElement.dataset.sort === %[1]q", c.key))
			want := c.down
			if eval[string](p, "document.querySelector('th[aria-sort]').getAttribute('aria-sort')") == "ascending" {
				want = c.up
			}
			if got := labels(); got != want {
				t.Errorf("sorted by %s: %q, want %q", c.key, got, want)
			}
		}
	}
	if dots := eval[int](p, "document.querySelectorAll('#runs svg.spark circle').length"); dots < 2 {
		t.Errorf("%d charts have a dot at the level of the answer, want those of both sweeps", dots)
	}
	if says := eval[string](p, "[...document.querySelectorAll('#runs tr')].find((e) => itemOf(e.dataset.run)?.about.label === 'base').querySelector('.spark').getAttribute('aria-label')"); !strings.HasPrefix(says, "TTFT p99 by load: ") || !strings.Contains(says, "at 10 req/s, ") || !strings.HasSuffix(says, " at 20 req/s") {
		t.Errorf("the chart says %q", says)
	}
	if loads := strings.Join(column(p, "Load"), ","); !strings.Contains(loads, "10 to 20 req/s") || !strings.Contains(eval[string](p, "document.getElementById('runs').innerText"), "random") {
		t.Errorf("the loads are %q", loads)
	}
	must.Do(t, p.Eval("sortBy('started', false)", nil))
}

// testForest checks the forest plot of a comparison whose TPOT is 5 ms longer.
func testForest(t *testing.T, p *tab) {
	marks := eval[[]struct {
		Name    string
		At      float64
		Zero    float64
		Verdict string
		Text    string
	}](p, `[...document.querySelectorAll('#comparison details:first-of-type tr[data-quantity]')].map((e) => ({
		name: e.dataset.quantity, at: +(e.querySelector('circle')?.getAttribute('cx') ?? -1), zero: +e.querySelector('.zero-line').getAttribute('x1'),
		verdict: e.querySelector('.verdict').innerText, text: e.querySelector('th').innerText }))`)
	if len(marks) < 10 {
		t.Fatalf("%d rows: %v", len(marks), marks)
	}
	for _, m := range marks {
		switch m.Name {
		case "tpot.mean", "itl.mean", "e2el.mean":
			if m.At <= m.Zero+20 || m.Verdict == "better" {
				t.Errorf("%s is longer, and is drawn at %v with 0 %% at %v: %s", m.Name, m.At, m.Zero, m.Verdict)
			}
		case "ttft.p99":
			if m.Text != "TTFT p99 (ms)" {
				t.Errorf("the name is %q", m.Text)
			}
		}
	}
	if bold := eval[string](p, "getComputedStyle(document.querySelector('#comparison td.verdict.no-test')).fontWeight"); bold != "400" {
		t.Errorf("what was not tested has the font weight %s", bold)
	}
}

// testEmptyFolder checks that an empty folder shows how to begin, and its first run when
// the run appears.
func testEmptyFolder(t *testing.T, b *chrome.Browser) {
	folder := t.TempDir()
	p := open(t, b, serve(t, ui.Options{Dir: folder}), chrome.View{Width: 1600, Height: 1000})
	p.wait("document.querySelector('.begin')")
	if said := p.text(".begin"); !strings.Contains(said, "tacho bench --base-url http://127.0.0.1:8000 --request-rate sweep --runs-dir "+folder) || !strings.Contains(said, "Waiting for the first run") {
		t.Errorf("the empty folder says %q", said)
	}
	dir := keep(t, folder, kept{label: "first", cut: true})
	runs(t, dir, snapshot(2, "fine"))
	p.wait("!document.querySelector('.begin') && document.querySelector('.state.running')")
	if said := p.text("#status"); said != "The first run is here: "+filepath.Base(dir)+"." {
		t.Errorf("the status is %q", said)
	}
}

// testTrend checks the trend of the runs with a tag, and the choice of their baseline.
func testTrend(t *testing.T, b *chrome.Browser) {
	folder := t.TempDir()
	var dirs []string
	for i := range 3 {
		dir := keep(t, folder, kept{label: fmt.Sprintf("run-%d", i), levels: 2, slow: ms * 5 * (1 << i)})
		b := must.Get(json.Marshal(map[string]any{"tags": []string{"main"}}))(t)
		must.Do(t, os.WriteFile(filepath.Join(dir, store.NotesFile), b, 0o600))
		dirs = append(dirs, dir)
	}
	p := open(t, b, serve(t, ui.Options{Dir: folder}), chrome.View{Width: 1600, Height: 1000})
	p.wait("document.querySelectorAll('#runs tbody tr').length === 3")
	if !eval[bool](p, "document.getElementById('trend').hidden") {
		t.Error("a trend without a tag")
	}
	p.click(`#tags [data-tag="main"]`)
	p.wait("document.querySelectorAll('#trend [data-trend]').length === 4")
	values := eval[[]float64](p, `JSON.parse(document.querySelector('[data-trend="TPOT p99 (ms)"]').dataset.values)`)
	if len(values) != 3 || values[0] >= values[1] || values[1] >= values[2] {
		t.Errorf("TPOT p99 is drawn as %v, want rising values", values)
	}
	if said := p.text("#trend"); !strings.Contains(said, "Trend of 3 runs tagged main") || !strings.Contains(said, filepath.Base(dirs[0])+", the first run") {
		t.Errorf("the trend says %.300q", said)
	}
	must.Do(t, p.Eval("location.hash = 'run=' + "+idOf(dirs[1])+"; 0", nil))
	p.wait("document.getElementById('baseline-button')")
	p.click("#baseline-button")
	p.wait("document.getElementById('baseline-button').getAttribute('aria-pressed') === 'true'")
	must.Do(t, p.Eval("location.hash = ''; 0", nil))
	p.wait(fmt.Sprintf("document.getElementById('trend').innerText.includes('Baseline: %s. ')", filepath.Base(dirs[1])))
	if faint := eval[[]string](p, contrast); len(faint) > 0 {
		t.Errorf("text with too little contrast: %q", faint)
	}
	p.click(`#trend .btn`)
	p.wait("document.querySelector('#comparison .answer')")
	if said := p.text("#comparison"); !strings.HasPrefix(said, "run-2 is worse than run-1 in ") {
		t.Errorf("the comparison says %.200s", said)
	}
	if faint := eval[[]string](p, contrast); len(faint) > 0 {
		t.Errorf("text with too little contrast: %q", faint)
	}
}
