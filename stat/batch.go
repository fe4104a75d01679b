package stat

import (
	"math"
	"time"
)

// A Batch is observations of one moment that several digests and series take in.
// What all of them ask of an observation is worked out once.
type Batch struct {
	Values []float64

	finite   []float64 // Values without NaN and infinities
	min, max float64   // of those
	sum      fixed
	bins     []int32
}

// Ready works out what is to be known of Values. Call it when they are there.
func (b *Batch) Ready() {
	b.finite, b.bins, b.sum = b.Values, b.bins[:0], fixed{}
	b.min, b.max = math.Inf(1), math.Inf(-1)
	for i, x := range b.Values {
		if x-x != 0 { // NaN and infinities alone
			b.drop(i)
			return
		}
		if x < b.min {
			b.min = x
		}
		if x > b.max {
			b.max = x
		}
		if x > fixedSmall || x < -fixedSmall {
			b.sum.addLarge(x)
		} else {
			b.sum.addSmall(x)
		}
		b.bins = append(b.bins, binOf(x, fineBits))
	}
}

// drop works it out without the values that are not finite, of which the first
// is at i.
func (b *Batch) drop(i int) {
	all, finite := b.Values, append([]float64(nil), b.Values[:i]...)
	for _, x := range all[i:] {
		if x-x == 0 {
			finite = append(finite, x)
		}
	}
	b.Values = finite
	b.Ready()
	b.Values = all
}

// AddBatch takes in the observations of a batch that is ready.
func (d *Digest) AddBatch(b *Batch) {
	if len(b.finite) == 0 {
		return
	}
	if d.n == 0 {
		d.min, d.max = b.min, b.max
	}
	d.n += len(b.finite)
	d.min, d.max = min(d.min, b.min), max(d.max, b.max)
	d.sum.merge(&b.sum)
	if d.bins == nil && d.n > d.limit() {
		d.spill()
	}
	if d.bins == nil {
		for _, x := range b.finite {
			d.keep(x)
		}
		return
	}
	for _, bin := range b.bins {
		d.bins.add(bin, 1)
	}
}

// AddTimes takes in observations that were made so many times each; none is NaN or
// infinite.
func (d *Digest) AddTimes(xs []float64, times []int) {
	for i, x := range xs {
		if d.n == 0 {
			d.min, d.max = x, x
		}
		d.n += times[i]
		if x < d.min {
			d.min = x
		}
		if x > d.max {
			d.max = x
		}
		d.sum.addTimes(x, times[i])
		if d.bins == nil && d.n > d.limit() {
			d.spill()
		}
		if d.bins != nil {
			d.bins.add(binOf(x, fineBits), int64(times[i]))
			continue
		}
		for range times[i] {
			d.keep(x)
		}
	}
}

// AddTimes takes in observations of one part of the time that were made so many times
// each; none is NaN or infinite.
func (s *Series) AddTimes(at time.Duration, xs []float64, times []int) {
	i := s.part(at)
	for k, x := range xs {
		s.n[i] += int64(times[k])
		s.sums[i].addTimes(x, times[k])
		s.row(sizeOf(x))[i] += uint32(times[k])
	}
}

// Begin is where the part of the time begins that a moment is in. Moments of one
// part are never told apart.
func (s *Series) Begin(at time.Duration) time.Duration {
	return time.Duration(s.part(at)) << s.shift
}

// AddBatch takes in the observations of a batch that is ready.
func (s *Series) AddBatch(at time.Duration, b *Batch) {
	if len(b.finite) == 0 {
		return
	}
	i := s.part(at)
	last := sizeOfBin(b.bins[0])
	row := s.row(last)
	for _, bin := range b.bins {
		if size := sizeOfBin(bin); size != last { // many that follow each other are of one size
			last, row = size, s.row(size)
		}
		row[i]++
	}
	s.n[i] += int64(len(b.finite))
	s.sums[i].merge(&b.sum)
}

// sizeOfBin is the size of the observations in a bin, which is finer.
func sizeOfBin(bin int32) int32 {
	switch {
	case bin == 0:
		return 0
	case bin < 0:
		return -sizeOfBin(-bin)
	}
	return min(max(((bin-1)>>(fineBits-sizeBits)+1)>>(sizeBits-octaveBits)-leastSize, 1), octaves*octave-1)
}
