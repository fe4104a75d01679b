package stat

import (
	"math"
	"time"
)

const (
	// seriesBins is the number of time bins in a Series.
	seriesBins = 256
	// seriesShift is the initial length of a time bin, as a power of two of nanoseconds: 66 us. The length doubles as
	// the series grows.
	seriesShift = 16

	// octave is the number of size classes between a number and its double.
	octave     = 1 << octaveBits
	octaveBits = 7
	sizeBits   = 10                        // mantissa bits that the bounds of size classes are rounded to
	octaves    = 64                        // powers of two with size classes, from 2^-32; smaller and larger values count as the first or last
	leastSize  = (1023 - 32) << octaveBits // the exponent of 1 is 1023 in the bits of a float64
)

// A Series is a set of observations with timestamps, in bounded memory. For each time bin it holds the number of
// observations, their sum, and how many there are in each size class, which is a 128th wide. From these, a Series
// computes confidence intervals of a mean or quantile if neighbours in time are correlated, as the latencies of a
// queue are.
//
// The results depend on the observations alone, not on their order or on the order of merges. The zero value is an
// empty Series.
type Series struct {
	shift uint // a time bin is 2^shift nanoseconds long
	n     [seriesBins]int64
	sums  [seriesBins]fixed
	rows  *[2 * octaves]*[octave]*row // by size class, in pages of one power of two
}

// A row counts the observations of one size class in each time bin.
type row [seriesBins]uint32

// Add adds observations with one timestamp. NaN and infinities are dropped.
func (s *Series) Add(at time.Duration, xs ...float64) {
	if len(xs) == 0 {
		return
	}
	i := s.timeBin(at)
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

// timeBin returns the time bin of at. If at is beyond the last bin, all bins become longer.
func (s *Series) timeBin(at time.Duration) int {
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

// halve merges every two time bins into one.
func halve[T any](parts []T, add func(to *T, part T)) {
	var none T
	for i, part := range parts {
		parts[i] = none
		add(&parts[i/2], part)
	}
}

// row returns the row of a size class.
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

// sizeOf returns the size class of x, with the sign of x. Zero has class 0.
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

// all yields the rows with observations, in the order of their size classes.
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

// Merge adds all observations of o. o does not change.
func (s *Series) Merge(o *Series) {
	if o.rows == nil {
		return
	}
	s.timeBin(0)
	for s.shift < o.shift {
		s.widen()
	}
	longer := s.shift - o.shift // a bin of s holds 2^longer bins of o
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

// N returns the number of observations.
func (s *Series) N() int {
	n := int64(0)
	for _, in := range s.n {
		n += in
	}
	return int(n)
}

// A cumulation counts the observations below a size class, for each time bin.
type cumulation struct {
	rows   []sized
	all    float64 // number of observations
	used   int     // rows counted so far
	taken  float64 // observations in the counted rows
	counts [seriesBins]float64
}

// A sized is a row with its sum.
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

// to counts the rows below the boundary of size classes nearest to the quantile q, but at least one row and not all
// rows. It returns false if no such boundary exists.
func (c *cumulation) to(q float64) bool {
	want := q * c.all
	if c.taken > want { // rows can only be added
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
