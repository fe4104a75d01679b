package token

import (
	"context"
	"fmt"
)

const (
	// fitMaxCalls limits the Count calls of one Fit, because each call may be a request
	// to a server.
	fitMaxCalls = 16
	// fitSecantCalls is the number of calls that use interpolation before Fit switches to
	// bisection.
	fitSecantCalls = 8
	// fitUnitsPerToken limits the length of the texts if the count does not grow with the
	// text.
	fitUnitsPerToken = 256
)

// Fit searches for a text of exactly n tokens among text(0), text(1), ..., which grow
// with their units (words, characters). The search starts at guessUnits. Fit returns the
// best text and its count: n if Fit found an exact text, otherwise the nearest count. It
// needs 2 to 4 counts if tokens grow evenly with units, and never more than 16. The
// counter need not be monotone. The same arguments give the same text.
func Fit(ctx context.Context, c Counter, n, guessUnits int, text func(units int) string) (string, int, error) {
	if n < 0 {
		return "", 0, fmt.Errorf("fit a text: %d tokens requested; request 0 or more", n)
	}
	f := fitting{want: n, max: fitUnitsPerToken * (n + 1), seen: map[int]bool{}}
	f.max = max(f.max, guessUnits)
	units := min(max(guessUnits, 0), f.max)
	var best string
	for range fitMaxCalls {
		candidate := text(units)
		count, err := c.Count(ctx, candidate)
		if err != nil {
			return "", 0, fmt.Errorf("fit a text of %d tokens: %w", n, err)
		}
		if f.add(point{units, count}) {
			best = candidate
		}
		if count == n {
			break
		}
		var ok bool
		if units, ok = f.next(); !ok {
			break
		}
	}
	return best, f.best.count, nil
}

// point is one measurement: a text of units units has count tokens.
type point struct{ units, count int }

// fitting is the state of one search: the points that bracket the target, and the last
// two points, which give the slope.
type fitting struct {
	want, max       int
	seen            map[int]bool
	below, above    *point // nearest points below and above the target
	last, secondary *point // the two newest points, newest first
	best            point
}

// add records a point and reports whether it is the best so far.
func (f *fitting) add(p point) bool {
	f.last, f.secondary = &p, f.last
	first := len(f.seen) == 0
	f.seen[p.units] = true
	switch {
	case p.count < f.want && (f.below == nil || p.units > f.below.units):
		f.below = &p
	case p.count > f.want && (f.above == nil || p.units < f.above.units):
		f.above = &p
	}
	if first || distance(p.count, f.want) < distance(f.best.count, f.want) {
		f.best = p
		return true
	}
	return false
}

// next returns the units to try next, or false if no candidate is left.
func (f *fitting) next() (int, bool) {
	if f.below != nil && f.above != nil {
		if lo, hi := f.below.units, f.above.units; lo+1 < hi {
			guess := lo + (hi-lo)/2
			if len(f.seen) < fitSecantCalls {
				guess = lo + (hi-lo)*(f.want-f.below.count)/(f.above.count-f.below.count)
			}
			if guess = min(max(guess, lo+1), hi-1); !f.seen[guess] {
				return guess, true
			}
		}
		return f.neighbour()
	}
	guess := f.extrapolate()
	if f.seen[guess] {
		return f.neighbour()
	}
	return guess, true
}

// extrapolate follows the slope of the last two points, or the ratio of the last point,
// towards the target.
func (f *fitting) extrapolate() int {
	p := *f.last
	guess := 2*p.units + 1
	switch q := f.secondary; {
	case q != nil && (p.count-q.count)*(p.units-q.units) > 0:
		guess = p.units + (f.want-p.count)*(p.units-q.units)/(p.count-q.count)
	case p.count > 0:
		guess = p.units * f.want / p.count
	}
	if p.count < f.want {
		return min(max(guess, p.units+1), f.max)
	}
	return max(min(guess, p.units-1), 0)
}

// neighbour walks outward from the best point, because a count that is not monotone may
// be exact just outside a closed bracket.
func (f *fitting) neighbour() (int, bool) {
	for d := 1; d <= fitMaxCalls; d++ {
		for _, u := range [2]int{f.best.units - d, f.best.units + d} {
			if u >= 0 && u <= f.max && !f.seen[u] {
				return u, true
			}
		}
	}
	return 0, false
}

func distance(a, b int) int { return max(a-b, b-a) }
