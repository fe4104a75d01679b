package stat

import (
	"math"
	"testing"
)

// The expected values are from R: 2*pt(-t, df) and qt(0.975, df), p.adjust(p, "BH").
func TestStudent(t *testing.T) {
	for _, c := range []struct{ t, df, p float64 }{{2.228139, 10, 0.05}, {4.302653, 2, 0.05}, {1.959964, 1e7, 0.05}, {0, 5, 1}, {3.169273, 10, 0.01}} {
		if p := StudentP(c.t, c.df); math.Abs(p-c.p) > 1e-6 {
			t.Errorf("StudentP(%v, %v) = %v, want %v", c.t, c.df, p, c.p)
		}
		if c.p < 1 {
			if q := StudentQuantile(1-c.p, c.df); math.Abs(q-c.t) > 1e-5 {
				t.Errorf("StudentQuantile(%v, %v) = %v, want %v", 1-c.p, c.df, q, c.t)
			}
		}
	}
}

func TestAdjusted(t *testing.T) {
	got, want := BenjaminiHochberg([]float64{0.03, 0.001, 0.5, 0.02}), []float64{0.04, 0.004, 0.5, 0.04}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Errorf("%v, want %v", got, want)
			break
		}
	}
}
