package token

import (
	"context"
	"fmt"
)

const (
	// fitMaxCalls bounds the Count calls of one Fit: each may be a request to a server.
	fitMaxCalls = 16
	// fitSecantCalls is how long interpolation is trusted before bisection takes over.
	fitSecantCalls = 8
	// fitUnitsPerToken bounds the texts Fit asks for, should the counter not
	// grow with the text at all.
	fitUnitsPerToken = 256
)

// Fit looks for a text of exactly n tokens among text(0), text(1), ..., which
// grow with their units (words, characters), starting at guessUnits. It returns
// the text and the count it reached: n when it found one, otherwise the nearest
// it saw. It needs 2 to 4 counts where tokens grow evenly with units and never
// more than 16; it stands counters that are not monotone; the same arguments
// give the same text.
func Fit(ctx context.Context, c Counter, n, guessUnits int, text func(units int) string) (string, int, error) {
	if n < 0 {
		return "", 0, fmt.Errorf("fit a text: %d tokens asked for; ask for 0 or more", n)
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

// A point is one count: so many units of text had so many tokens.
type point struct{ units, count int }

// fitting is the state of one search: the points that bracket the target, and
// the last two, which give the slope.
type fitting struct {
	want, max       int
	seen            map[int]bool
	below, above    *point // nearest known too short and too long
	last, secondary *point // the two newest, newest first
	best            point
}

// add notes a point and says whether it is the best so far.
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

// next proposes the units to try next, or false when nothing is left to try.
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

// extrapolate follows the slope of the last two points, or the ratio of the
// last one, in the direction of the target.
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

// neighbour walks outward from the best point: a count that is not monotone
// may be exact just beside a bracket that has closed.
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
