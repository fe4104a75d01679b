package stat

import (
	"cmp"
	"slices"
	"time"
)

const (
	digitBits = 11
	fewItems  = 1 << 10
)

// SortBy sorts items by their keys. The sort is stable. It is a radix sort: for millions of items it takes a tenth of
// the time of a comparison sort.
func SortBy[T any](items []T, key func(T) uint64) {
	if len(items) < fewItems {
		slices.SortStableFunc(items, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
		return
	}
	same := ^uint64(0) // bits equal in all keys
	for _, item := range items {
		same &^= key(item) ^ key(items[0])
	}
	from, to := items, make([]T, len(items))
	for shift := 0; shift < 64; shift += digitBits {
		if ^same>>shift&(1<<digitBits-1) == 0 {
			continue // all digits here are equal
		}
		var next [1 << digitBits]int // index for the next item with each digit
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

// SortTimes sorts times in ascending order.
func SortTimes(times []time.Duration) { SortBy(times, TimeKey) }

// TimeKey returns a key that sorts like t.
func TimeKey(t time.Duration) uint64 { return uint64(t) ^ 1<<63 }
