package predict

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Draws follow the correlations of the errors, as far as a distribution with them
// exists.
func TestDrawsFollowCorrelations(t *testing.T) {
	p := profile(t)
	a, b, c := "cost.step at 1", "cost.step at 8192", "front_end.fixed_ms"
	p.Errors = map[string]float64{a: 0.01, b: 0.1, c: 0.2}
	for _, tc := range []struct {
		name          string
		ab, ac, bc    float64
		wantAB, wantC float64
	}{
		{"two move against each other", -0.9, 0, 0, -0.9, 0},
		{"none", 0, 0, 0, 0, 0},
		{"what cannot be is made smaller", 0.95, 0.95, -0.95, 0.5, 0.5},
	} {
		p.Correlations = map[string]float64{pair(a, b): tc.ab, pair(a, c): tc.ac, pair(b, c): tc.bc}
		rng := rand.New(rand.NewPCG(1, 2))
		var x, y, z []float64
		for range 3000 {
			q := Draw(p, rng)
			x = append(x, math.Log(q.Cost.Step[0].Ms))
			y = append(y, math.Log(q.Cost.Step[len(q.Cost.Step)-1].Ms))
			z = append(z, math.Log(q.FrontEnd.FixedMs))
		}
		if got := correlation(x, y); math.Abs(got-tc.wantAB) > 0.06 {
			t.Errorf("%s: correlation %.2f, want %.2f", tc.name, got, tc.wantAB)
		}
		if got := correlation(x, z); math.Abs(got-tc.wantC) > 0.06 {
			t.Errorf("%s: correlation %.2f, want %.2f", tc.name, got, tc.wantC)
		}
	}
}

func correlation(x, y []float64) float64 {
	var mx, my, xx, yy, xy float64
	n := float64(len(x))
	for i := range x {
		mx += x[i] / n
		my += y[i] / n
	}
	for i := range x {
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
		xy += (x[i] - mx) * (y[i] - my)
	}
	return xy / math.Sqrt(xx*yy)
}
