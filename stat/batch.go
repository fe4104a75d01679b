package stat

import (
	"math"
	"time"
)

// A Batch is a set of observations with one timestamp that several digests and series add. Ready computes their bins
// and sum once for all of them.
type Batch struct {
	Values []float64

	finite   []float64 // Values without NaN and infinities
	min, max float64   // of finite
	sum      fixed
	bins     []int32
}

// Ready computes the bins and the sum. Call it when Values is complete.
func (b *Batch) Ready() {
	b.finite, b.bins, b.sum = b.Values, b.bins[:0], fixed{}
	b.min, b.max = math.Inf(1), math.Inf(-1)
	for i, x := range b.Values {
		if x-x != 0 { // true only for NaN and infinities
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

// drop removes the values that are not finite and computes the rest again. The first such value is at i.
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

// AddBatch adds the observations of a batch after Ready.
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

// AddTimes adds xs[i] times[i] times. The values must be finite.
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

// AddTimes adds xs[i] times[i] times, all in the time bin of at. The values must be finite.
func (s *Series) AddTimes(at time.Duration, xs []float64, times []int) {
	i := s.timeBin(at)
	for k, x := range xs {
		s.n[i] += int64(times[k])
		s.sums[i].addTimes(x, times[k])
		s.row(sizeOf(x))[i] += uint32(times[k])
	}
}

// Begin returns the start of the time bin that contains at. A series does not distinguish times within a bin.
func (s *Series) Begin(at time.Duration) time.Duration {
	return time.Duration(s.timeBin(at)) << s.shift
}

// AddBatch adds the observations of a batch after Ready.
func (s *Series) AddBatch(at time.Duration, b *Batch) {
	if len(b.finite) == 0 {
		return
	}
	i := s.timeBin(at)
	last := sizeOfBin(b.bins[0])
	row := s.row(last)
	for _, bin := range b.bins {
		if size := sizeOfBin(bin); size != last { // consecutive values often have the same size class
			last, row = size, s.row(size)
		}
		row[i]++
	}
	s.n[i] += int64(len(b.finite))
	s.sums[i].merge(&b.sum)
}

// sizeOfBin returns the size class of the observations in a digest bin, which is narrower.
func sizeOfBin(bin int32) int32 {
	switch {
	case bin == 0:
		return 0
	case bin < 0:
		return -sizeOfBin(-bin)
	}
	return min(max(((bin-1)>>(fineBits-sizeBits)+1)>>(sizeBits-octaveBits)-leastSize, 1), octaves*octave-1)
}
