package report

import (
	"strings"
	"testing"

	"tacho/compare"
)

// However small p is, it takes seven places: rows are to fit into 80 columns.
func TestDeltaWordsAreShort(t *testing.T) {
	first := 6.37
	for _, p := range []float64{1e-9, 0.0004, 0.0007, 0.00099, 0.001, 0.004, 0.2} {
		d := &compare.Delta{Difference: -0.5, Adjusted: &p, Verdict: compare.Better}
		row := &compare.Row{Values: []*float64{&first, &first}, Deltas: []*compare.Delta{nil, d}}
		if _, _, verdict := deltaWords(row, 1); len(verdict) > len("p=0.001 better") || !strings.HasSuffix(verdict, "better") {
			t.Errorf("p %v: %q", p, verdict)
		}
	}
}
