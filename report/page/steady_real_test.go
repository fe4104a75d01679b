//go:build real

package page_test

import (
	"fmt"
	"strings"
	"testing"

	"tacho/metric"
)

// note is what the table behind the numbers says in the row of that name, of the
// cells and beside them.
func note(p *tab, row string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf(`[...document.querySelectorAll('#behind-table tr')].find((r) => r.cells[0].innerText.startsWith(%q))?.innerText ?? ''`, row))
}

// Each level has its own reason for not being in balance.
func TestRealReasonsOfEachLevel(t *testing.T) {
	run := measured(about, requests(0, 20, 10, 0), requests(1, 120, 20, 0), requests(2, 180, 30, 0))
	run.Levels[2].Summary.Steady = &metric.SteadyState{WhyNot: metric.LittleIsOff}
	said := note(open(t, desk, "", run), "In balance")
	for _, want := range []string{"Never at 10: " + metric.TooShort + ".", "Never at 30: " + metric.LittleIsOff + "."} {
		if !strings.Contains(said, want) {
			t.Errorf("the page says %q, want %q", said, want)
		}
	}
	for i := range run.Levels {
		run.Levels[i].Summary.Steady = &metric.SteadyState{WhyNot: metric.LittleIsOff}
	}
	if said := note(open(t, desk, "", run), "In balance"); !strings.Contains(said, "Never: "+metric.LittleIsOff+".") {
		t.Errorf("the page says %q", said)
	}
}
