package stat

import (
	"math"
	"slices"
	"time"
)

// A Window is a time window in which a run was in steady state.
type Window struct {
	From, To time.Duration
	Horizon  time.Duration // how long a request, including the queue it leaves behind, influences other requests
	Memory   time.Duration // how long the queue remembers its length; 0 if that is short
	Requests *Series       // one observation for each request of the run
	Fixed    bool          // the number of requests in the run was fixed in advance
}

const (
	// MinHorizons is the smallest length of a window, in horizons. A shorter window has fewer than four waves slower
	// than the horizon.
	MinHorizons = 4
	// wavesFactor and wavesPower give the number of slow waves in a window. The number with the best coverage of
	// cosine intervals grows with the power 2/3 of the length. The factor is for a correlation time of a third to a
	// half of the horizon.
	wavesFactor = 1.6
	wavesPower  = 2.0 / 3

	// MinMemories is the smallest length of a window in memories. A run that is shorter sees too few queues: the
	// longest decide, and most short runs have none of them.
	MinMemories = 10
)

// Memories returns the length of the window in memories of the queue.
func (st *Window) Memories() float64 {
	return float64(st.To-st.From) / (2 * max(float64(st.Memory), 1))
}

// Waves returns the number of waves in the window that are slow compared with the horizon.
func (st *Window) Waves() int {
	horizons := float64(st.To-st.From) / max(float64(st.Horizon), 1)
	return int(min(max(wavesFactor*math.Pow(horizons, wavesPower), MinHorizons), maxWaves))
}

// IntervalsIn returns confidence intervals for a window of the series. d is the distribution of all observations of
// the series. IntervalsIn also returns the distribution within the window, or nil if the window contains no
// observation.
func (s *Series) IntervalsIn(d Distribution, st *Window) (Intervals, Distribution) {
	part := s.between(st.From, st.To)
	if part.N() == 0 {
		return Intervals{Mean: unbounded(0, TooFew)}, nil
	}
	requests := st.Requests.between(st.From, st.To)
	l := load{unit: max(float64(part.N())/max(float64(requests.N()), 1), 1), most: st.Waves(), long: true, memories: st.Memories()}
	if st.Fixed {
		l.paced, l.fixed = requests, float64(requests.N())/max(float64(st.Requests.N()), 1)
	}
	values := newPortion(s, part, d)
	if values.std == 0 && d.Std() > 0 { // rare values occur only outside the window
		return Intervals{Mean: unbounded(0, TooFew)}, values
	}
	return part.intervals(values, l), values
}

// between returns the part of the series from one time to another, in whole time bins.
func (s *Series) between(from, to time.Duration) *Series {
	out := &Series{shift: s.shift}
	if s.rows == nil {
		return out
	}
	length := time.Duration(1) << s.shift
	lo, hi := int(max(from, 0)/length), int(min(max(to, 0)/length, seriesBins))
	if max(from, 0)%length > 0 {
		lo++
	}
	if lo >= hi {
		return out
	}
	out.rows = new([2 * octaves]*[octave]*row)
	copy(out.n[:], s.n[lo:hi])
	copy(out.sums[:], s.sums[lo:hi])
	for size, r := range s.all {
		if slices.ContainsFunc(r[lo:hi], func(n uint32) bool { return n > 0 }) {
			copy(out.row(size)[:], r[lo:hi])
		}
	}
	return out
}

// A portion is the distribution of a part of a series. The values of one size class in the part are assumed to be
// distributed like all values of the class.
type portion struct {
	whole    Distribution
	n, all   float64   // observations in the part and in the whole
	sum, std float64   // of the part
	upTo     []float64 // observations in the part, up to each size class
	before   []float64 // observations in the whole, below each size class
	within   []float64 // observations in the whole, in each size class
}

func newPortion(whole, part *Series, d Distribution) *portion {
	p := &portion{whole: d, n: float64(part.N()), all: float64(whole.N())}
	for i := range part.sums {
		p.sum += part.sums[i].float()
	}
	counts := map[int32]float64{}
	for size, r := range part.all {
		counts[size] = total(r)
	}
	before, upTo, squares := 0.0, 0.0, 0.0
	for size, r := range whole.all {
		n := total(r)
		if here := counts[size]; here > 0 {
			upTo += here
			p.upTo, p.before, p.within = append(p.upTo, upTo), append(p.before, before), append(p.within, n)
			off := d.Quantile((before+(n-1)/2)/max(p.all-1, 1)) - p.Mean()
			squares += here * off * off
		}
		before += n
	}
	if d.Std() > 0 {
		p.std = math.Sqrt(squares / p.n)
	}
	return p
}

func total(r *row) (sum float64) {
	for _, n := range r {
		sum += float64(n)
	}
	return sum
}

func (p *portion) Mean() float64   { return p.sum / p.n }
func (p *portion) Std() float64    { return p.std }
func (p *portion) Median() float64 { return p.Quantile(0.5) }
func (p *portion) Min() float64    { return p.Quantile(0) }
func (p *portion) Max() float64    { return p.Quantile(1) }

// Quantile converts the rank in the part to a rank in the whole and returns that quantile of the whole.
func (p *portion) Quantile(q float64) float64 {
	rank := min(max(q, 0), 1) * (p.n - 1)
	i, _ := slices.BinarySearch(p.upTo, rank+1)
	i = min(i, len(p.upTo)-1)
	earlier := 0.0
	if i > 0 {
		earlier = p.upTo[i-1]
	}
	here := p.upTo[i] - earlier
	share := min(max((rank+0.5-earlier)/here, 0), 1)
	inside := min(max(share*p.within[i]-0.5, 0), p.within[i]-1)
	return p.whole.Quantile((p.before[i] + inside) / max(p.all-1, 1))
}

// RateInterval returns the confidence interval of a number per second in a window cut into equal parts. counts has
// the number in each part, and sent has the requests sent in each part.
func (st *Window) RateInterval(counts, sent []float64) Interval {
	sum, n := 0.0, 0.0
	for i := range counts {
		sum, n = sum+counts[i], n+sent[i]
	}
	off := make([]float64, len(counts))
	for i := range off {
		off[i] = counts[i] - sum/float64(len(counts))
	}
	waves := st.Waves()
	free := waves
	if st.Fixed {
		removeArrivals(off, sent, n/max(float64(st.Requests.N()), 1))
		free-- // removeArrivals uses one degree of freedom
	}
	power := 0.0
	all := wavesOf(off)
	for _, wave := range all[:waves] {
		power += wave * wave
	}
	variance := 2 * power / float64(free)
	half, seconds := student975(free)*math.Sqrt(variance), (st.To - st.From).Seconds()
	return Interval{Low: max(sum-half, 0) / seconds, High: (sum + half) / seconds, Effective: min(sum*sum/max(variance, 1), sum)}
}
