package report

import (
	"math"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/metric"
)

// Every number that is printed for people is a short text, also if it is no number.
func FuzzNumbers(f *testing.F) {
	special := []float64{0, 1, -1, 1e300, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN()}
	for _, v := range special {
		for _, w := range special {
			f.Add(v, w)
		}
	}
	f.Fuzz(func(t *testing.T, v, w float64) {
		quotient := v / w
		row := &compare.Row{Values: []*float64{&w, &v}, Deltas: []*compare.Delta{nil, {Difference: v - w, Share: &quotient, Low: &v, High: &w, Adjusted: new(0.5)}}}
		change, interval, verdict := deltaWords(row, 1)
		absolute := *row.Deltas[1]
		absolute.Share = nil
		row.Deltas[1] = &absolute
		difference, between, _ := deltaWords(row, 1)
		column := number("x", func(struct{}) *float64 { return &v })
		for _, text := range []string{
			figureOr(&v), fixed(&v), share(&v), microsWords(v), column.format(column.of(struct{}{})), csvCell(numberKind, column.of(struct{}{})),
			change, interval, verdict, difference, between, metric.Signed(v),
		} {
			if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, "+n/a") || strings.Contains(text, "%!") {
				t.Errorf("%v and %v: %q", v, w, text)
			}
		}
	})
}
