package search

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// Seen is what a load came to.
type Seen struct {
	Load       float64 // requests a second, or requests in flight
	Throughput float64 // requests a second that were served
	Latency    float64 // of a request, on average; in any unit
	Failed     bool    // no request was served
}

// Saturation is what doubling the load brings at least, below saturation: this
// many times the throughput.
const Saturation = 1.15

// gain is how far throughput follows load between two loads: 1 if it grows alike,
// 0 if it does not grow.
func gain(a, b Seen) float64 {
	if b.Failed || b.Throughput <= 0 {
		return 0
	}
	return math.Log(b.Throughput/a.Throughput) / math.Log(b.Load/a.Load)
}

// farther is how many times more load there must be for nothing, and slower how
// many times longer requests must take, to be far past the knee.
const (
	farther = 4
	slower  = 2
)

// FarPast says whether b is far past the knee of the curve, which a had passed:
// it is four times the load, and brought no more throughput, but took longer.
func FarPast(a, b Seen) bool {
	return !a.Failed && b.Load >= farther*a.Load && b.Throughput < Saturation*a.Throughput && b.Latency >= slower*a.Latency
}

// A Sweep places the levels of a curve: from a first load up to saturation, and
// then in between, where the curve bends.
type Sweep struct {
	Points int     // of the curve
	First  float64 // load
	Most   float64 // load; 0 is no bound
	Whole  bool    // loads are whole numbers

	seen []Seen // by load
	full bool   // the last of them is past saturation
}

// Add takes what a load came to.
func (s *Sweep) Add(o Seen) {
	s.seen = append(s.seen, o)
	slices.SortFunc(s.seen, func(a, b Seen) int { return cmp.Compare(a.Load, b.Load) })
	n := len(s.seen)
	if top := s.seen[n-1]; top.Failed || n > 1 && top.Load == o.Load && gain(s.seen[n-2], top) < math.Log2(Saturation) {
		s.full = true
	}
}

// Saturated says whether the end of the curve was found.
func (s *Sweep) Saturated() bool { return s.full }

// keepsUp is the share of the requests/s sent that a server serves at least if it
// keeps up: the conclusion of a run says below it that the server falls behind.
const keepsUp = 0.9

// FellBehind reports whether the server fell behind at one of the loads. Only
// request rates can be too high for a server; requests in flight wait for it.
func (s *Sweep) FellBehind() bool {
	return !s.Whole && slices.ContainsFunc(s.seen, func(o Seen) bool { return o.Failed || o.Throughput < keepsUp*o.Load })
}

// Next is where to measure next; false: the curve is done.
func (s *Sweep) Next() (load float64, ok bool) {
	switch n := len(s.seen); {
	case n == 0:
		return s.round(s.First), true
	case n >= s.Points:
		return 0, false
	case !s.full && (s.Most == 0 || s.seen[n-1].Load < s.Most):
		return s.further(), true
	}
	return s.between()
}

// further is the next load on the way up: four times the last while requests take
// no longer than the first did, else twice.
func (s *Sweep) further() float64 {
	const unhurried = 1.15
	top, step := s.seen[len(s.seen)-1], 2.0
	if top.Latency <= unhurried*s.seen[0].Latency {
		step = 4
	}
	next := s.round(step * top.Load)
	if s.Most > 0 {
		next = min(next, s.Most)
	}
	return next
}

// between is the middle of the interval in which the curves of throughput and
// latency, both axes logarithmic, are least known: it is long, and they bend at
// its ends.
func (s *Sweep) between() (load float64, ok bool) {
	const even = 0.1 // what does not bend is measured here and there
	best := 0.0
	for i := range len(s.seen) - 1 {
		a, b := s.seen[i], s.seen[i+1]
		middle := s.round(math.Sqrt(a.Load * b.Load))
		score := math.Log(b.Load/a.Load) * (even + s.bend(i) + s.bend(i+1))
		if middle > a.Load && middle < b.Load && score > best {
			load, ok, best = middle, true, score
		}
	}
	return load, ok
}

// bend is how far the curves turn at a point.
func (s *Sweep) bend(i int) float64 {
	if i == 0 || i == len(s.seen)-1 {
		return 0
	}
	a, b, c := s.seen[i-1], s.seen[i], s.seen[i+1]
	bend := math.Abs(s.slope(b, c, throughput) - s.slope(a, b, throughput))
	if !a.Failed && !b.Failed && !c.Failed {
		bend += math.Abs(s.slope(b, c, latency) - s.slope(a, b, latency))
	}
	return bend
}

func throughput(o Seen) float64 { return o.Throughput }
func latency(o Seen) float64    { return o.Latency }

func (s *Sweep) slope(a, b Seen, of func(Seen) float64) float64 {
	const least = 1e-3 // of the largest: nothing at all has no logarithm
	floor := 0.0
	for _, o := range s.seen {
		floor = max(floor, least*of(o))
	}
	if floor == 0 {
		return 0
	}
	return math.Log(max(of(b), floor)/max(of(a), floor)) / math.Log(b.Load/a.Load)
}

// round makes a load fit to be read: a whole number, or one of three digits.
func (s *Sweep) round(load float64) float64 {
	if s.Whole {
		return max(math.Round(load), 1)
	}
	f, _ := strconv.ParseFloat(strconv.FormatFloat(load, 'g', 3, 64), 64) // it was written as a number
	return f
}
