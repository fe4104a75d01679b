package stat

import (
	"math"
	"time"
)

const (
	// seriesBins is into how many parts a Series cuts its time, at most.
	seriesBins = 256
	// seriesShift is how long such a part is at first, as a power of two of
	// nanoseconds: 66 us. It doubles as the series grows.
	seriesShift = 16

	// octave is how many sizes are told apart between a number and its double.
	octave     = 1 << octaveBits
	octaveBits = 7
	sizeBits   = 10                        // of a mantissa, which the bounds of sizes are rounded to
	octaves    = 64                        // of sizes, from 2^-32 on; what is smaller or larger counts as the last
	leastSize  = (1023 - 32) << octaveBits // the exponent of 1 is 1023 in the bits of a float64
)

// A Series is observations with their times, in bounded memory: how many there
// were in each part of the time, their sum, and how large they were to within a
// 128th. It tells how far a mean or a quantile may be off where neighbours in
// time resemble each other, as the latencies of a queue do.
//
// What it tells depends on the observations alone, never on their order nor on
// how they were merged. The zero value is empty.
type Series struct {
	shift uint // length of a part: 2^shift nanoseconds
	n     [seriesBins]int64
	sums  [seriesBins]fixed
	rows  *[2 * octaves]*[octave]*row // by size, in pages of one power of two
}

// A row is how many observations of one size came in each part of the time.
type row [seriesBins]uint32

// Add takes in observations of one moment. NaN and infinities are dropped.
func (s *Series) Add(at time.Duration, xs ...float64) {
	if len(xs) == 0 {
		return
	}
	i := s.part(at)
	n, sum := int64(0), fixed{}
	for _, x := range xs {
		if x-x != 0 {
			continue
		}
		n++
		sum.add(x)
		s.row(sizeOf(x))[i]++
	}
	s.n[i] += n
	s.sums[i].merge(&sum)
}

// part is the part of the time that a moment is in. All become longer where
// they must.
func (s *Series) part(at time.Duration) int {
	if s.rows == nil {
		s.shift, s.rows = seriesShift, new([2 * octaves]*[octave]*row)
	}
	at = max(at, 0)
	for at>>s.shift >= seriesBins {
		s.widen()
	}
	return int(at >> s.shift)
}

func (s *Series) widen() {
	s.shift++
	halve(s.n[:], func(to *int64, n int64) { *to += n })
	halve(s.sums[:], func(to *fixed, sum fixed) { to.merge(&sum) })
	for _, r := range s.all {
		halve(r[:], func(to *uint32, n uint32) { *to += n })
	}
}

// halve makes one part of every two.
func halve[T any](parts []T, add func(to *T, part T)) {
	var none T
	for i, part := range parts {
		parts[i] = none
		add(&parts[i/2], part)
	}
}

// row is that of a size.
func (s *Series) row(size int32) *row {
	page := &s.rows[size>>octaveBits+octaves]
	if *page == nil {
		*page = new([octave]*row)
	}
	r := &(*page)[size&(octave-1)]
	if *r == nil {
		*r = new(row)
	}
	return *r
}

// sizeOf is the size of x, with its sign. Zero is 0.
func sizeOf(x float64) int32 {
	size := min(max(binOf(math.Abs(x), sizeBits)>>(sizeBits-octaveBits)-leastSize, 1), octaves*octave-1)
	switch {
	case x == 0:
		return 0
	case x < 0:
		return -size
	}
	return size
}

// all yields the rows that are not empty, in the order of their sizes.
func (s *Series) all(yield func(size int32, r *row) bool) {
	if s.rows == nil {
		return
	}
	for power, page := range s.rows {
		if page == nil {
			continue
		}
		for i, r := range page {
			if r != nil && !yield(int32(power-octaves)<<octaveBits+int32(i), r) {
				return
			}
		}
	}
}

// Merge takes in all that o has seen; o does not change.
func (s *Series) Merge(o *Series) {
	if o.rows == nil {
		return
	}
	s.part(0)
	for s.shift < o.shift {
		s.widen()
	}
	longer := s.shift - o.shift // our parts than those of o, as a power of two
	for i := range o.n {
		s.n[i>>longer] += o.n[i]
		s.sums[i>>longer].merge(&o.sums[i])
	}
	for size, from := range o.all {
		to := s.row(size)
		for i, n := range from {
			to[i>>longer] += n
		}
	}
}

// N is the number of observations.
func (s *Series) N() int {
	n := int64(0)
	for _, in := range s.n {
		n += in
	}
	return int(n)
}

// A cumulation counts the observations up to boundaries between sizes, the only
// ones that can be told apart, in each part of the time.
type cumulation struct {
	rows   []sized
	all    float64 // observations
	used   int     // rows that are counted
	taken  float64 // observations in these
	counts [seriesBins]float64
}

// A sized is a row with the sum of it.
type sized struct {
	*row
	sum float64
}

func (s *Series) cumulate() *cumulation {
	c := &cumulation{all: float64(s.N())}
	for _, r := range s.all {
		sum := 0.0
		for _, n := range r {
			sum += float64(n)
		}
		c.rows = append(c.rows, sized{r, sum})
	}
	return c
}

// to counts up to that boundary which has most nearly a share q of all below it,
// and neither none nor all of them. False: there is no such boundary.
func (c *cumulation) to(q float64) bool {
	want := q * c.all
	if c.taken > want { // rows only come one by one
		c.used, c.taken, c.counts = 0, 0, [seriesBins]float64{}
	}
	for ; c.used < len(c.rows)-1; c.used++ {
		r := c.rows[c.used]
		if c.used > 0 && c.taken+r.sum-want > want-c.taken {
			break
		}
		c.taken += r.sum
		for k, n := range r.row {
			c.counts[k] += float64(n)
		}
	}
	return c.used > 0
}
