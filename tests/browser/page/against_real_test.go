//go:build real

package page_test

import (
	"strings"
	"testing"
)

// TestRealSentenceOnTwoRuns checks that the sentence about two runs claims a difference
// only if it is significant.
func TestRealSentenceOnTwoRuns(t *testing.T) {
	const n = 400
	first := withRecords("first", 0, requests(0, n, 10, 0))
	bare := withRecords("bare", 50*ms, requests(0, n, 10, 0))
	bare.Levels[0].Records = nil
	p := open(t, desk, "", first, withRecords("same", ms/100, requests(0, n, 10, 0)), withRecords("slow", 50*ms, requests(0, n, 10, 0)), bare)
	said := map[string]string{}
	for line := range strings.Lines(eval[string](p, "document.getElementById('level-line').innerText")) {
		if _, rest, found := strings.Cut(line, "In comparison, "); found {
			name, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
			said[name] = text
		}
	}
	for name, want := range map[string]string{"same": "mean TTFT without a significant difference", "slow": " × as long, ", "bare": " × as long (not tested)"} {
		if !strings.Contains(said[name], want) {
			t.Errorf("of %s the page says %q, want %q", name, said[name], want)
		}
	}
	if claims := eval[int](p, `[...document.querySelectorAll('#level-line b')].filter((e) => e.textContent.includes('×')).length`); claims == 0 || strings.Contains(said["same"], "mean TTFT 1") {
		t.Errorf("%d claims: %q", claims, said)
	}
	p.click("[data-run='0']") // compare has no result for the other runs
	p.wait("!document.getElementById('level-line').innerText.includes('Against that')")
}
