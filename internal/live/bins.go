package live

import (
	"maps"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

// Bins is a histogram of durations by bin. Histograms can be added.
type Bins map[int]int64

const (
	fine = 7                       // log2 of the bins per doubling: a bin is 0.8 % wide, because rules compare percentiles that differ by 2 %
	bins = (42 - fine + 1) << fine // up to 73 minutes; longer durations are in the last bin
)

// binOf returns the bin of a duration. Below 128 ns each duration has its own bin, above
// there are 128 bins per doubling.
func binOf(d time.Duration) int {
	if d < 1<<fine {
		return int(max(d, 0))
	}
	shift := bits.Len64(uint64(d)) - 1 - fine
	return min((shift+1)<<fine|int(d>>shift)&(1<<fine-1), bins-1)
}

// middle returns the middle of a bin.
func middle(bin int) time.Duration {
	if bin < 1<<fine {
		return time.Duration(bin)
	}
	shift := bin>>fine - 1
	low := time.Duration(1<<fine|bin&(1<<fine-1)) << shift
	return low + time.Duration(1)<<shift/2
}

// add adds the counts of o.
func (b *Bins) add(o Bins) {
	if *b == nil && len(o) > 0 {
		*b = Bins{}
	}
	for bin, n := range o {
		(*b)[bin] += n
	}
}

// count counts a duration.
func (b *Bins) count(d time.Duration) {
	if *b == nil {
		*b = Bins{}
	}
	(*b)[binOf(d)]++
}

// figure returns the percentiles of the histogram.
func (b Bins) figure() Figure {
	var f Figure
	for _, n := range b {
		f.N += n
	}
	if f.N == 0 {
		return f
	}
	sizes := slices.Sorted(maps.Keys(b))
	at := func(q float64) *float64 {
		rank, seen := int64(q*float64(f.N-1)), int64(0)
		for _, bin := range sizes {
			if seen += b[bin]; seen > rank {
				return new(middle(bin).Seconds() * 1e3)
			}
		}
		return nil
	}
	f.P50, f.P99 = at(0.5), at(0.99)
	return f
}

// perDoubling is the number of buckets of a histogram for each doubling of a duration.
const perDoubling = 4

// buckets returns the histogram in wider bins, from the first with a value to the last.
func (b Bins) buckets() (out []Bucket) {
	wide := map[int]int64{}
	for bin, n := range b {
		wide[bin>>fine*perDoubling+bin&(1<<fine-1)*perDoubling>>fine] += n
	}
	if len(wide) == 0 {
		return nil
	}
	sizes := slices.Sorted(maps.Keys(wide))
	for at := sizes[0]; at <= sizes[len(sizes)-1]; at++ {
		out = append(out, Bucket{FromMillis: bound(at), BelowMillis: bound(at + 1), N: wide[at]})
	}
	return out
}

// bound returns the lower end of a bucket in milliseconds.
func bound(bucket int) float64 {
	return lower(bucket/perDoubling<<fine+bucket%perDoubling<<fine/perDoubling).Seconds() * 1e3
}

// lower returns the lower end of a bin.
func lower(bin int) time.Duration {
	if bin < 1<<fine {
		return time.Duration(bin)
	}
	return time.Duration(1<<fine|bin&(1<<fine-1)) << (bin>>fine - 1)
}

// A counter counts durations from many goroutines in bins.
type counter [bins]atomic.Int64

func (c *counter) add(d time.Duration, n int64) { c[binOf(d)].Add(n) }

// take returns the counts since the last call.
func (c *counter) take() Bins {
	var out Bins
	for i := range c {
		if c[i].Load() > 0 {
			if out == nil {
				out = Bins{}
			}
			out[i] = c[i].Swap(0)
		}
	}
	return out
}
