package compare

import (
	"math"

	"tacho/stat"
)

// difference is how far b is from a. Each side's error counts in the direction
// that brings the two together.
func difference(a, b *estimated) *Delta {
	d := &Delta{Difference: b.value - a.value, Share: shareOf(b.value-a.value, a.value)}
	switch {
	case a.noTest != "":
		d.NoTest = a.noTest
		return d
	case b.noTest != "":
		d.NoTest = b.noTest
		return d
	}
	a, b = a.besideRuns(b), b.besideRuns(a)
	down, up := math.Hypot(b.low, a.high), math.Hypot(b.high, a.low)
	freedom := welch(a, b)
	t := stat.StudentQuantile(intervalLevel, freedom)
	low, high := d.Difference-t*down, d.Difference+t*up
	if a.value >= 0 && b.value >= 0 {
		low = max(low, -a.value) // times, rates and shares cannot fall below 0: by 100 % at most
	}
	d.Low, d.High = &low, &high
	toward := down
	if d.Difference < 0 {
		toward = up
	}
	p := 1.0
	switch {
	case d.Difference == 0:
	case toward == 0: // neither side has any spread, as in virtual time
		p = 0
	default:
		p = stat.StudentP(d.Difference/toward, freedom)
	}
	d.P = &p
	return d
}

// besideRuns is a single run that is held against several: it may be off by what
// sets runs of the other side apart.
func (e *estimated) besideRuns(other *estimated) *estimated {
	if e.runs > 0 || other.runs == 0 {
		return e
	}
	one := *e
	one.low, one.high, one.freedom = max(e.low, other.runs), max(e.high, other.runs), other.freedom
	return &one
}

// welch is the degrees of freedom of a difference of two means of different
// spread.
func welch(a, b *estimated) float64 {
	va, vb := square(a.low+a.high)/4, square(b.low+b.high)/4
	if va+vb == 0 {
		return a.freedom + b.freedom
	}
	return square(va+vb) / (square(va)/a.freedom + square(vb)/b.freedom)
}

func square(x float64) float64 { return x * x }
