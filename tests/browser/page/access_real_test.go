//go:build real

package page_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/tests/browser/chrome"
)

// axe is the accessibility checker. make axe installs it.
const axe = "../../../.cache/axe/package/axe.min.js"

// TestRealAccessible checks pages against WCAG 2.1 AA with axe-core, in both themes, with
// a pinned request, open tables and a chosen SLO.
func TestRealAccessible(t *testing.T) {
	checker, err := os.ReadFile(axe)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("axe-core is not installed: make axe")
	}
	must.Do(t, err)
	for name, list := range map[string][]outcome.Run{
		"sweep": {withSLO()}, "single": {measured(about, requests(0, 200, 10, 20))}, "several": {withSLO(), measured(outcome.About{Name: "other"}, requests(0, 50, 10, 0))},
	} {
		for _, view := range []chrome.View{desk, {Width: 390, Height: 900, Dark: true}, {Width: 1600, Height: 1000, Dark: true}} {
			t.Run(fmt.Sprintf("%s, %d wide, dark %v", name, view.Width, view.Dark), func(t *testing.T) {
				p := open(t, view, "#slo=ttft:p99<90ms", list...)
				p.do("pinNext(1); figures.slice(0, 2).forEach((f) => act(f, 'data')); document.querySelectorAll('details').forEach((d) => { d.open = true })")
				p.do(string(checker))
				found := eval[[]string](p, `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'cat.keyboard'] })
					.then((r) => r.violations.flatMap((v) => v.nodes.slice(0, 3).map((n) => v.id + ': ' + n.html.slice(0, 120) + ' ' + (n.any[0]?.message || ''))))`)
				slices.Sort(found)
				for _, one := range slices.Compact(found) {
					t.Error(one)
				}
			})
		}
	}
}

// TestRealContrast checks the contrast of texts in charts, 4.5:1, and of lines and marks,
// 3:1, in both themes. axe does not check charts.
func TestRealContrast(t *testing.T) {
	const script = `(() => {
		const lum = (c) => rgb(c).map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
		const ratio = (a, b) => { const [x, y] = [lum(a), lum(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05) };
		const paper = ink('paper'), bad = (selector, key, least) => [...document.querySelectorAll(selector)].map((e) => [e, getComputedStyle(e)[key]])
			.filter(([e, c]) => c.startsWith('rgb') && ratio(c, paper) < least).map(([e, c]) => (e.textContent || e.getAttribute('class')) + ' ' + c + ' ' + ratio(c, paper).toFixed(2) + ' in ' + e.closest('figure')?.dataset.figure);
		return [...new Set([...bad('svg text, svg tspan:not(.strong)', 'fill', 4.5), ...bad('svg .curve, svg .mark-line, svg .limit-line, svg .own:not(text), svg .fail', 'stroke', 3), ...bad('svg .part, svg circle.split', 'fill', 3)])];
	})()`
	for _, dark := range []bool{false, true} {
		for _, run := range [][]outcome.Run{{withSLO()}, {withSLO(), withSLO(), withSLO(), withSLO(), withSLO(), withSLO()}, {measured(about, requests(0, 200, 10, 20))}} {
			p := open(t, chrome.View{Width: 1600, Height: 1000, Dark: dark}, "#slo=ttft:p99<90ms", run...)
			if low := eval[[]string](p, script); len(low) > 0 {
				t.Errorf("dark %v, %d runs: too little contrast:\n%s", dark, len(run), strings.Join(low, "\n"))
			}
		}
	}
}
