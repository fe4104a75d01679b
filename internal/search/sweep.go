package search

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// Seen is a measured point of a curve.
type Seen struct {
	Load       float64 // requests per second sent, or requests in flight
	Throughput float64 // requests per second served
	Latency    float64 // mean latency of a request, in any unit
	Failed     bool    // no request was served
}

// Saturation is the least ratio of throughputs, if the load is doubled below saturation.
const Saturation = 1.15

// gain returns the growth of throughput relative to the growth of load, as a ratio of
// logarithms: 1 if throughput is proportional to load, 0 if it does not grow.
func gain(a, b Seen) float64 {
	if b.Failed || b.Throughput <= 0 {
		return 0
	}
	return math.Log(b.Throughput/a.Throughput) / math.Log(b.Load/a.Load)
}

const (
	// farPastLoad is the least ratio of loads without more throughput to be far past
	// the knee.
	farPastLoad = 4
	// farPastLatency is the least ratio of latencies to be far past the knee.
	farPastLatency = 2
)

// FarPast reports whether b is far past the knee of the curve, which a had passed: it has
// four times the load and twice the latency, but no more throughput.
func FarPast(a, b Seen) bool {
	return !a.Failed && b.Load >= farPastLoad*a.Load && b.Throughput < Saturation*a.Throughput && b.Latency >= farPastLatency*a.Latency
}

// A Sweep chooses the loads of a curve: from a first load up to saturation, and then
// between two loads where the curve bends.
type Sweep struct {
	Points int     // most points of the curve
	First  float64 // first load
	Most   float64 // highest load; 0 is no bound
	Whole  bool    // loads are whole numbers

	seen      []Seen // by load
	saturated bool   // the highest load is past saturation
}

// Add takes a measured point.
func (s *Sweep) Add(o Seen) {
	s.seen = append(s.seen, o)
	slices.SortFunc(s.seen, func(a, b Seen) int { return cmp.Compare(a.Load, b.Load) })
	n := len(s.seen)
	if top := s.seen[n-1]; top.Failed || n > 1 && top.Load == o.Load && gain(s.seen[n-2], top) < math.Log2(Saturation) {
		s.saturated = true
	}
}

// Saturated reports whether a load past saturation was measured.
func (s *Sweep) Saturated() bool { return s.saturated }

// keepsUp is the least share of the requests per second sent that a server serves if it
// keeps up. The conclusion of a run uses the same share.
const keepsUp = 0.9

// FellBehind reports whether the server served less than was sent at one of the loads.
// This is possible only for request rates, because a closed loop waits for answers.
func (s *Sweep) FellBehind() bool {
	return !s.Whole && slices.ContainsFunc(s.seen, func(o Seen) bool { return o.Failed || o.Throughput < keepsUp*o.Load })
}

// Next returns the next load to measure; false if the curve is complete.
func (s *Sweep) Next() (load float64, ok bool) {
	switch n := len(s.seen); {
	case n == 0:
		return s.round(s.First), true
	case n >= s.Points:
		return 0, false
	case !s.saturated && (s.Most == 0 || s.seen[n-1].Load < s.Most):
		return s.further(), true
	}
	return s.between()
}

// unloadedStep is the ratio of the next load to a load with the latency of an idle server.
const unloadedStep = 4.0

// further returns the next load on the way up: four times the last load if latency is
// still about as low as at the first load, else twice.
func (s *Sweep) further() float64 {
	const unloadedLatency = 1.15 // ratio of latencies; less is variation between runs
	top, step := s.seen[len(s.seen)-1], 2.0
	if top.Latency <= unloadedLatency*s.seen[0].Latency {
		step = unloadedStep
	}
	next := s.round(step * top.Load)
	if s.Most > 0 {
		next = min(next, s.Most)
	}
	return next
}

// between returns the middle of the interval in which the curves of throughput and
// latency are least known: the interval is long on a logarithmic axis, and the curves
// bend at its ends.
func (s *Sweep) between() (load float64, ok bool) {
	const straight = 0.1 // weight of an interval without a bend; long intervals are then measured too
	best := 0.0
	for i := range len(s.seen) - 1 {
		a, b := s.seen[i], s.seen[i+1]
		middle := s.round(math.Sqrt(a.Load * b.Load))
		score := math.Log(b.Load/a.Load) * (straight + s.bend(i) + s.bend(i+1))
		if middle > a.Load && middle < b.Load && score > best {
			load, ok, best = middle, true, score
		}
	}
	return load, ok
}

// bend returns the change of the slopes of both curves at a point.
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

// slope returns the slope of a curve between two points on logarithmic axes.
func (s *Sweep) slope(a, b Seen, of func(Seen) float64) float64 {
	const minShare = 1e-3 // of the largest value, because zero has no logarithm
	floor := 0.0
	for _, o := range s.seen {
		floor = max(floor, minShare*of(o))
	}
	if floor == 0 {
		return 0
	}
	return math.Log(max(of(b), floor)/max(of(a), floor)) / math.Log(b.Load/a.Load)
}

// round returns a load of three digits, or a whole number.
func (s *Sweep) round(load float64) float64 {
	if s.Whole {
		return max(math.Round(load), 1)
	}
	f, _ := strconv.ParseFloat(strconv.FormatFloat(load, 'g', 3, 64), 64) // it was written as a number
	return f
}
