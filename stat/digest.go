package stat

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
	"slices"
)

const (
	// ExactLimit is the number of observations that a Digest keeps individually by default.
	ExactLimit = 1 << 20
	// SketchError is the largest relative error of a quantile if a Digest has more observations than its limit.
	SketchError = 1.0 / (2 << fineBits)

	// fineBits is the number of mantissa bits that select the bin: a bin is 1/8192 of its value wide, so its middle
	// is off by half of that at most.
	fineBits = 13
	pageBits = 7 // bits of a bin number within a page
)

// A Digest is a set of finite observations in bounded memory. Up to a limit, a Digest keeps every observation and all
// results are exact. Above the limit, a Digest counts observations in bins of equal relative width: quantiles and the
// standard deviation are then within SketchError, and the number, mean, minimum and maximum stay exact.
//
// The results depend on the observations alone, not on their order or on the order of merges. The zero value is an
// empty Digest with the limit ExactLimit.
type Digest struct {
	Limit int // observations to keep; 0 means ExactLimit

	nanos    []int32   // observations that are whole numbers of millionths, in millionths: most latencies
	others   []float64 // all other kept observations
	bins     *bins     // nil while all observations are kept
	n        int
	min, max float64
	sum      fixed
}

// millionth converts milliseconds to nanoseconds. Observations in milliseconds are multiples of a millionth because
// the clock counts nanoseconds.
const millionth = 1e6

// Add adds observations. NaN and infinities are dropped.
func (d *Digest) Add(xs ...float64) {
	for _, x := range xs {
		if x-x != 0 { // true only for NaN and infinities
			continue
		}
		if d.n == 0 {
			d.min, d.max = x, x
		}
		if d.n++; x < d.min {
			d.min = x
		} else if x > d.max {
			d.max = x
		}
		d.sum.add(x)
		if d.bins != nil {
			d.bins.add(binOf(x, fineBits), 1)
			continue
		}
		if d.n > d.limit() {
			d.spill()
			d.bins.add(binOf(x, fineBits), 1)
			continue
		}
		d.keep(x)
	}
}

func (d *Digest) keep(x float64) {
	if n := math.RoundToEven(x * millionth); n >= math.MinInt32 && n <= math.MaxInt32 && n/millionth == x && (n != 0 || !math.Signbit(x)) {
		d.nanos = Append(d.nanos, int32(n))
		return
	}
	d.others = Append(d.others, x)
}

// Append is like append but doubles the capacity. append grows a large slice by a quarter only and so leaves four
// times as much garbage.
func Append[T any](to []T, x T) []T {
	if len(to) == cap(to) {
		to = slices.Grow(to, max(len(to), 1))
	}
	return append(to, x)
}

func (d *Digest) limit() int { return cmp.Or(d.Limit, ExactLimit) }

// spill moves the kept observations into bins.
func (d *Digest) spill() {
	d.bins = &bins{}
	for x := range d.kept {
		d.bins.add(binOf(x, fineBits), 1)
	}
	d.nanos, d.others = nil, nil
}

// kept yields the observations kept individually.
func (d *Digest) kept(yield func(float64) bool) {
	for _, n := range d.nanos {
		if !yield(float64(n) / millionth) {
			return
		}
	}
	for _, x := range d.others {
		if !yield(x) {
			return
		}
	}
}

// Merge adds all observations of o. o does not change.
func (d *Digest) Merge(o *Digest) {
	if o.n == 0 {
		return
	}
	if d.n == 0 {
		d.min, d.max = o.min, o.max
	}
	d.n += o.n
	d.min, d.max = min(d.min, o.min), max(d.max, o.max)
	d.sum.merge(&o.sum)
	if d.bins == nil && (o.bins != nil || d.n > d.limit()) {
		d.spill()
	}
	if d.bins == nil {
		d.nanos, d.others = append(d.nanos, o.nanos...), append(d.others, o.others...)
		return
	}
	for bin, n := range o.bins.all {
		d.bins.add(bin, n)
	}
	for x := range o.kept {
		d.bins.add(binOf(x, fineBits), 1)
	}
}

// N returns the number of observations.
func (d *Digest) N() int { return d.n }

// Exact reports whether every observation is kept.
func (d *Digest) Exact() bool { return d.bins == nil }

// Min returns the smallest observation, or 0 if there is none.
func (d *Digest) Min() float64 { return d.min }

// Max returns the largest observation, or 0 if there is none.
func (d *Digest) Max() float64 { return d.max }

// Sum returns the sum of the observations, each rounded to 2^-40.
func (d *Digest) Sum() float64 { return d.sum.float() }

// Distribution returns the distribution of the observations so far.
func (d *Digest) Distribution() Distribution {
	if d.bins == nil {
		return d.Sample()
	}
	b := binned{Digest: d}
	total := int64(0)
	for bin, n := range d.bins.all {
		total += n
		b.edges, b.ranks = append(b.edges, bin), append(b.ranks, total)
	}
	return b
}

// Sample returns the observations of an exact Digest in ascending order.
func (d *Digest) Sample() Sample {
	slices.Sort(d.nanos)
	slices.Sort(d.others)
	out, others := make(Sample, 0, len(d.nanos)+len(d.others)), d.others
	for _, n := range d.nanos {
		x := float64(n) / millionth
		for len(others) > 0 && others[0] < x {
			out, others = append(out, others[0]), others[1:]
		}
		out = append(out, x)
	}
	return append(out, others...)
}

// A Distribution describes a set of observations.
type Distribution interface { //nolint:interfacebloat // one question each
	Mean() float64
	Std() float64
	Median() float64
	Quantile(q float64) float64
	Min() float64
	Max() float64
}

// binned is the Distribution of a Digest with bins.
type binned struct {
	*Digest
	edges []int32 // bins in order
	ranks []int64 // number of observations up to and including each bin
}

// Quantile follows the rule of Sample, with each observation in the middle of its bin.
func (b binned) Quantile(q float64) float64 {
	position := float64(b.n-1) * min(max(q, 0), 1)
	below := int64(position)
	lo, hi := b.at(below), b.at(min(below+1, int64(b.n-1)))
	return lo + (hi-lo)*(position-float64(below))
}

// at returns the observation with the given rank, counted from 0.
func (b binned) at(rank int64) float64 {
	switch rank {
	case 0:
		return b.min
	case int64(b.n - 1):
		return b.max
	}
	i, _ := slices.BinarySearch(b.ranks, rank+1)
	return min(max(middle(b.edges[i]), b.min), b.max)
}

func (b binned) Median() float64 { return b.Quantile(0.5) }
func (b binned) Mean() float64   { return b.Sum() / float64(b.n) }

func (b binned) Std() float64 {
	mean, squares := b.Mean(), 0.0
	for bin, n := range b.bins.all {
		d := middle(bin) - mean
		squares += d * d * float64(n)
	}
	return math.Sqrt(squares / float64(b.n))
}

// bins count observations by bin, in pages allocated on first use. The bins of one power of two are contiguous. Bins
// of negative numbers come before middlePower.
type bins [2 * middlePower]*[1 << (fineBits - pageBits)]*page

type page [1 << pageBits]int64

const middlePower = 1 << 11 // a float64 has 11 bits of exponent

func (b *bins) add(bin int32, n int64) {
	power := &b[bin>>fineBits+middlePower]
	if *power == nil {
		*power = new([1 << (fineBits - pageBits)]*page)
	}
	at := &(*power)[bin>>pageBits&(1<<(fineBits-pageBits)-1)]
	if *at == nil {
		*at = new(page)
	}
	(*at)[bin&(1<<pageBits-1)] += n
}

// all yields the bins with observations in order. A nil bins yields nothing.
func (b *bins) all(yield func(bin int32, n int64) bool) {
	if b == nil {
		return
	}
	for i, power := range b {
		if power == nil {
			continue
		}
		for k, at := range power {
			if at != nil && !at.all(int32(i-middlePower)<<fineBits+int32(k)<<pageBits, yield) {
				return
			}
		}
	}
}

// all yields the bins of a page, numbered from first, until yield returns false.
func (p *page) all(first int32, yield func(bin int32, n int64) bool) bool {
	for i, n := range p {
		if n > 0 && !yield(first+int32(i), n) {
			return false
		}
	}
	return true
}

// binOf returns the bin of x: its exponent and the first bits of its mantissa, as encoded in a float64, with the sign
// of x. Zero is in bin 0.
func binOf(x float64, fine int) int32 {
	i := int32(math.Float64bits(math.Abs(x))>>(52-fine)) + 1
	switch {
	case x == 0:
		return 0
	case x < 0:
		return -i
	}
	return i
}

// middle returns the value in the middle of a bin.
func middle(bin int32) float64 {
	switch {
	case bin == 0:
		return 0
	case bin < 0:
		return -middle(-bin)
	}
	return math.Float64frombits(uint64(bin-1)<<(52-fineBits) + 1<<(51-fineBits))
}

// fixed is a sum in units of 2^-40, as a 128-bit number in two's complement, so that the sum does not depend on the
// order of its terms.
type fixed struct {
	hi int64
	lo uint64
}

const (
	fixedBits  = 40
	fixedMost  = 1 << 62               // larger numbers count as fixedMost
	fixedSmall = 1 << (62 - fixedBits) // numbers up to this, nearly all, fit into one word
)

func (f *fixed) add(x float64) {
	if x > fixedSmall || x < -fixedSmall {
		f.addLarge(x)
	} else {
		f.addSmall(x)
	}
}

func (f *fixed) addSmall(x float64) {
	n := int64(math.RoundToEven(x * (1 << fixedBits)))
	lo, carry := bits.Add64(f.lo, uint64(n), 0)
	f.lo, f.hi = lo, f.hi+n>>63+int64(carry)
}

func (f *fixed) addLarge(x float64) {
	whole := math.Floor(min(max(x, -fixedMost), fixedMost))
	part := uint64(math.RoundToEven((x - whole) * (1 << fixedBits)))
	n := int64(whole)
	f.merge(&fixed{n >> (64 - fixedBits), uint64(n) << fixedBits})
	f.merge(&fixed{0, part})
}

// addTimes adds x n times.
func (f *fixed) addTimes(x float64, n int) {
	if x > fixedSmall || x < -fixedSmall {
		for range n {
			f.addLarge(x)
		}
		return
	}
	one := int64(math.RoundToEven(x * (1 << fixedBits)))
	hi, lo := bits.Mul64(uint64(one), uint64(n))
	lo, carry := bits.Add64(f.lo, lo, 0)
	f.lo, f.hi = lo, f.hi+int64(hi)+one>>63*int64(n)+int64(carry)
}

func (f *fixed) merge(o *fixed) {
	lo, carry := bits.Add64(f.lo, o.lo, 0)
	f.lo, f.hi = lo, f.hi+o.hi+int64(carry)
}

func (f *fixed) float() float64 {
	if n := int64(f.lo); n>>63 == f.hi { // nearly always: the sum fits into one word
		return float64(n) / (1 << fixedBits)
	}
	whole := new(big.Int).Lsh(big.NewInt(f.hi), 64)
	whole.Add(whole, new(big.Int).SetUint64(f.lo))
	out, _ := new(big.Rat).SetFrac(whole, big.NewInt(1<<fixedBits)).Float64()
	return out
}
