package stat

import (
	"math"
	"math/rand/v2"
)

// Gamma draws from the gamma distribution with the given shape and scale 1, by the method of Marsaglia and Tsang
// (2000). A shape below 1 is boosted: a draw of shape+1 times u^(1/shape).
func Gamma(r *rand.Rand, shape float64) float64 {
	boost := 1.0
	if shape < 1 {
		boost = math.Pow(1-r.Float64(), 1/shape) // 1-u: never 0
		shape++
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		if u := 1 - r.Float64(); math.Log(u) < x*x/2+d-d*v+d*math.Log(v) {
			return boost * d * v
		}
	}
}
