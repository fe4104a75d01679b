package stat

import (
	"math"
	"testing"
)

// The p-values are sums of whole binomial coefficients.
func TestFisherP(t *testing.T) {
	for _, c := range []struct {
		a, n, b, m int
		want       float64
	}{
		{0, 400, 12, 400, 0.00044907297815},
		{0, 400, 5, 400, 0.06171924441},
		{3, 4, 1, 4, 0.485714285714},
		{1, 12, 9, 12, 0.0027594561852},
		{0, 10, 0, 10, 1},
		{10, 10, 10, 10, 1},
		{5, 100, 5, 100, 1},
	} {
		if p := FisherP(c.a, c.n, c.b, c.m); math.Abs(p-c.want) > 1e-9 {
			t.Errorf("%d of %d against %d of %d: %g, want %g", c.a, c.n, c.b, c.m, p, c.want)
		}
		if p, q := FisherP(c.a, c.n, c.b, c.m), FisherP(c.b, c.m, c.a, c.n); math.Abs(p-q) > 1e-9 {
			t.Errorf("the order of the samples matters: %g and %g", p, q)
		}
	}
}
