package stat

import "math"

// A Paired table counts pairs of two answers to the same question: before and after a change.
type Paired struct {
	Both    int // right before and after
	Lost    int // right before, wrong after
	Gained  int // wrong before, right after
	Neither int
}

// N returns the number of pairs.
func (t Paired) N() int { return t.Both + t.Lost + t.Gained + t.Neither }

// Loss returns the share that was lost minus the share that was gained.
func (t Paired) Loss() float64 {
	if t.N() == 0 {
		return 0
	}
	return float64(t.Lost-t.Gained) / float64(t.N())
}

// McNemarP returns the two-sided p-value of McNemar's exact test.
func (t Paired) McNemarP() float64 {
	return min(1, 2*BinomialCDF(float64(min(t.Lost, t.Gained)), float64(t.Lost+t.Gained), 0.5))
}

// LossP returns the one-sided p-value of the same test: the probability of losing at least as many pairs if losses and
// gains were equally likely.
func (t Paired) LossP() float64 {
	return BinomialTail(t.Lost, t.Lost+t.Gained, 0.5)
}

// BinomialTail returns the probability of at least k successes in n independent trials.
func BinomialTail(k, n int, p float64) float64 {
	if k <= 0 {
		return 1
	}
	return BinomialCDF(float64(n-k), float64(n), 1-p)
}

// LossInterval returns a confidence interval for the loss by Newcombe's method 10: Wilson's limits of both shares,
// combined with their correlation. z is the normal quantile, 1.96 for 95 %.
func (t Paired) LossInterval(z float64) (low, high float64) {
	n := float64(t.N())
	if n == 0 {
		return -1, 1
	}
	before, after := t.Both+t.Lost, t.Both+t.Gained
	p1, p2 := float64(before)/n, float64(after)/n
	l1, u1 := WilsonInterval(before, t.N(), z)
	l2, u2 := WilsonInterval(after, t.N(), z)
	phi := t.phi()
	side := func(a, b float64) float64 { return math.Sqrt(max(a*a-2*phi*a*b+b*b, 0)) }
	d := p1 - p2
	return max(d-side(p1-l1, u2-p2), -1), min(d+side(u1-p1, p2-l2), 1)
}

// phi returns the correlation of both answers, with Newcombe's correction for continuity.
func (t Paired) phi() float64 {
	n := float64(t.N())
	a, b, c, d := float64(t.Both), float64(t.Lost), float64(t.Gained), float64(t.Neither)
	root := math.Sqrt((a + b) * (c + d) * (a + c) * (b + d))
	if root == 0 {
		return 0
	}
	cross := a*d - b*c
	if cross > 0 {
		cross = max(cross-n/2, 0)
	}
	return cross / root
}

// WilsonInterval returns Wilson's score interval for a share of k in n.
func WilsonInterval(k, n int, z float64) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	p, m := float64(k)/float64(n), float64(n)
	centre, width := p+z*z/(2*m), z*math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max((centre-width)/(1+z*z/m), 0), min((centre+width)/(1+z*z/m), 1)
}

// DetectableLoss returns the smallest loss that McNemar's test finds in n pairs with a probability of 80 %, one-sided
// at 5 %, if the share discordant of the pairs differs for other reasons, too. It is above 1 if no loss can be found.
func DetectableLoss(n int, discordant float64) float64 {
	const z95, z80 = 1.6449, 0.8416
	need := func(d float64) float64 {
		pd := max(discordant, d)
		x := z95*math.Sqrt(pd) + z80*math.Sqrt(pd-d*d)
		return x * x / (d * d)
	}
	low, high := 0.0, 1.0
	if float64(n) < need(high) {
		return math.Inf(1)
	}
	for range 50 {
		if mid := (low + high) / 2; need(mid) > float64(n) {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}
