package live

import (
	"maps"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

// Bins are how many durations there were of each size. They add up.
type Bins map[int]int64

const (
	fine = 5                       // bits within a doubling: a bin is 3 % wide
	bins = (42 - fine + 1) << fine // up to 73 minutes; what is longer is in the last
)

// binOf is the bin of a duration. Below 32 ns each has its own; from there on
// each doubling has 32.
func binOf(d time.Duration) int {
	if d < 1<<fine {
		return int(max(d, 0))
	}
	shift := bits.Len64(uint64(d)) - 1 - fine
	return min((shift+1)<<fine|int(d>>shift)&(1<<fine-1), bins-1)
}

// middle is the duration that stands for a bin.
func middle(bin int) time.Duration {
	if bin < 1<<fine {
		return time.Duration(bin)
	}
	shift := bin>>fine - 1
	low := time.Duration(1<<fine|bin&(1<<fine-1)) << shift
	return low + time.Duration(1)<<shift/2
}

// add adds the bins of others.
func (b *Bins) add(o Bins) {
	if *b == nil && len(o) > 0 {
		*b = Bins{}
	}
	for bin, n := range o {
		(*b)[bin] += n
	}
}

// figure is what bins come to.
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

// A counter makes bins of durations that come from many goroutines.
type counter [bins]atomic.Int64

func (c *counter) add(d time.Duration, n int64) { c[binOf(d)].Add(n) }

// take is what has come since the last time.
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
