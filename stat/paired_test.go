package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMcNemar(t *testing.T) {
	for _, c := range []struct {
		lost, gained int
		two, one     float64
	}{{0, 0, 1, 1}, {5, 0, 0.0625, 0.03125}, {0, 5, 0.0625, 1}, {9, 2, 0.0654297, 0.0327148}, {3, 3, 1, 0.65625}} {
		p := Paired{Both: 50, Lost: c.lost, Gained: c.gained}
		if two, one := p.McNemarP(), p.LossP(); math.Abs(two-c.two) > 1e-6 || math.Abs(one-c.one) > 1e-6 {
			t.Errorf("%d and %d: p %v and %v, want %v and %v", c.lost, c.gained, two, one, c.two, c.one)
		}
	}
}

// The interval contains the true loss in about 95 % of samples, also near 0 losses and gains.
func TestLossIntervalCovers(t *testing.T) {
	const runs = 4000
	rng := rand.New(rand.NewPCG(7, 7))
	for _, c := range []struct {
		n          int
		lost, gain float64
	}{{100, 0.02, 0.02}, {200, 0.05, 0.01}, {500, 0.01, 0.002}, {1000, 0.06, 0.06}} {
		inside := 0
		for range runs {
			var p Paired
			for range c.n {
				switch u := rng.Float64(); {
				case u < c.lost:
					p.Lost++
				case u < c.lost+c.gain:
					p.Gained++
				case u < 0.9:
					p.Both++
				default:
					p.Neither++
				}
			}
			if low, high := p.LossInterval(1.96); low <= c.lost-c.gain && c.lost-c.gain <= high {
				inside++
			}
		}
		if share := float64(inside) / runs; share < 0.935 || share > 0.995 {
			t.Errorf("%+v: covers %.3f", c, share)
		}
	}
}

// The sizes of the usual formula: a loss of 2 points needs 615 pairs if 4 % differ.
func TestDetectableLoss(t *testing.T) {
	for _, c := range []struct {
		n          int
		discordant float64
		want       float64
	}{{615, 0.04, 0.02}, {2470, 0.04, 0.01}, {245, 0.10, 0.05}} {
		if got := DetectableLoss(c.n, c.discordant); math.Abs(got-c.want) > 0.0003 {
			t.Errorf("%d pairs, %v discordant: %v, want %v", c.n, c.discordant, got, c.want)
		}
	}
	if got := DetectableLoss(1, 0); !math.IsInf(got, 1) {
		t.Errorf("one pair: %v", got)
	}
}
