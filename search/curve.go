package search

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"tacho/stat"
)

// A curve is which share of the requests misses a goal at each load. It takes no server
// to tell how crowded it is at a load in the long run: a lens and a long schedule will
// do. How slow requests are that come when it is so crowded is what the probes saw, all
// of them together.
type curve struct {
	lens
	at      float64 // the load near which it was learned
	slope   float64 // by how much requests are slower where it is more crowded
	power   float64 // and where the load is higher, beyond that
	edges   []float64
	most    float64   // the most crowded that was seen
	strata  []stratum // of the requests, divided at the edges by how crowded it was
	process []arrival // arrivals, at one a second
	known   map[int][]crowded
}

// A stratum is what is left of how slow its requests were, with crowd and load taken
// out, in order.
type stratum struct {
	left []float64
	of   []source
	from []float64 // how much those count that are at a place or after it
}

// A source is a request of a sample, how much it counts, and what it shows.
type source struct {
	sample, request   int
	near              float64
	crowd, slow, load float64 // as logarithms
}

// crowded is how crowded it is for a part of the requests.
type crowded struct{ crowd, part float64 }

const (
	curveReach = 0.15 // how far away what was seen still counts, of the logarithm of the load
	faint      = 1e-3 // what counts less does not count
	mostSlow   = 20.0 // what failed is so slow
	fewest     = 150  // requests for a curve
)

// newCurves are the curves of the goals, as they are near a load; nil where there is
// none.
func (s *Search) newCurves(all []sample, at float64, process []arrival) []*curve {
	out := make([]*curve, len(s.Goals))
	for i, g := range s.Goals {
		if s.lenses[i].tells > 0 && !g.Mean && !g.counted() {
			out[i] = newCurve(i, s.lenses[i], all, at, process)
		}
	}
	return out
}

func newCurve(goal int, l lens, all []sample, at float64, process []arrival) *curve {
	c := &curve{lens: l, at: at, process: process, known: map[int][]crowded{}}
	var seen []source
	sum := 0.0
	for i := range all {
		p := &all[i]
		near := nearness(p.Load, at, curveReach)
		if near < faint {
			continue
		}
		crowd := l.crowd(p.schedule)[p.begin:]
		for k := range p.window {
			if m := p.window[k].marks[goal]; m.n > 0 {
				sum += near
				seen = append(seen, source{i, k, near, crowd[k], min(-m.room, mostSlow), math.Log(p.Load / at)})
			}
		}
	}
	if sum < fewest {
		return nil
	}
	c.fit(seen)
	c.divide(seen)
	c.count(all)
	return c
}

// fit finds the slope and the power, by least squares. The power is drawn towards what
// a lens would leave that tells so much.
func (c *curve) fit(seen []source) {
	var n, x, y, l float64
	for _, o := range seen {
		n, x, y, l = n+o.near, x+o.near*o.crowd, y+o.near*o.slow, l+o.near*o.load
	}
	x, y, l = x/n, y/n, l/n
	var xx, xy, xl float64
	ll, ly := usualWeight, usualWeight*(1-c.tells)*fitPower
	for _, o := range seen {
		dx, dy, dl := o.crowd-x, o.slow-y, o.load-l
		xx, xy, xl = xx+o.near*dx*dx, xy+o.near*dx*dy, xl+o.near*dx*dl
		ll, ly = ll+o.near*dl*dl, ly+o.near*dl*dy
	}
	c.slope = (xy*ll - ly*xl) / max(xx*ll-xl*xl, 1e-12)
	c.power = (ly - c.slope*xl) / ll
}

// divide makes the strata, finer where it is more crowded.
func (c *curve) divide(seen []source) {
	slices.SortStableFunc(seen, func(a, b source) int { return cmp.Compare(a.crowd, b.crowd) })
	c.most = seen[len(seen)-1].crowd
	left := func(o source) float64 { return o.slow - c.slope*o.crowd - c.power*o.load }
	from := 0
	for _, q := range []float64{0.5, 0.7, 0.8, 0.87, 0.92, 0.95, 0.97, 0.98, 0.99, 1} {
		to := int(q * float64(len(seen)))
		if q < 1 && min(to-from, len(seen)-to) < scoutSize {
			continue
		}
		if to < len(seen) {
			c.edges = append(c.edges, seen[to].crowd)
		}
		one := stratum{of: slices.Clone(seen[from:to]), from: make([]float64, to-from+1)}
		slices.SortStableFunc(one.of, func(a, b source) int { return cmp.Compare(left(a), left(b)) })
		for _, o := range one.of {
			one.left = append(one.left, left(o))
		}
		c.strata, from = append(c.strata, one), to
	}
}

// count sums up what was drawn of the samples.
func (c *curve) count(all []sample) {
	for k := range c.strata {
		s := &c.strata[k]
		for i := range slices.Backward(s.of) {
			s.from[i] = s.from[i+1] + s.of[i].near*all[s.of[i].sample].drawn[s.of[i].request]
		}
	}
}

// misses is the share of the requests that miss the goal at a load.
func (c *curve) misses(load float64) (share float64) {
	beyond := c.power * math.Log(load/c.at)
	for _, one := range c.usual(load) {
		crowd := min(one.crowd, c.most) // nobody knows what is beyond
		s := &c.strata[sort.SearchFloat64s(c.edges, crowd)]
		slow := sort.SearchFloat64s(s.left, -c.slope*crowd-beyond)
		share += one.part * s.from[slow] / max(s.from[0], 1e-12)
	}
	return share
}

// crossing is the load from which on more requests miss the goal than may; infinity
// where that is not so within bounds.
func (c *curve) crossing(share float64, bounds [2]float64) float64 {
	breaks := func(log float64) bool { return c.misses(math.Exp(log)) > share }
	for _, times := range []float64{1.04, 1.2} { // it is likely to be near
		low, high := max(bounds[0], c.at/times), min(bounds[1], c.at*times)
		switch {
		case low >= high:
		case breaks(math.Log(high)):
			if !breaks(math.Log(low)) {
				return bisect([2]float64{low, high}, breaks)
			}
		case high == bounds[1]:
			return math.Inf(1)
		}
	}
	return bisect(bounds, breaks)
}

// curve is that of a goal; nil where there is none.
func (s *Search) curve(goal int) *curve {
	if s.curves == nil {
		return nil
	}
	return s.curves[goal]
}

// firstCurve is which curve shows the lowest limit.
func (s *Search) firstCurve(all []sample, low, high float64) limit {
	best := limit{math.Inf(1), -1}
	for i, c := range s.curves {
		if c == nil {
			continue
		}
		c.count(all)
		if x := c.crossing(s.Goals[i].Share, [2]float64{low, min(high, best.load)}); x < best.load {
			best = limit{x, i}
		}
	}
	return best
}

// usual is how crowded it is at a load in the long run, between two loads of a grid.
func (c *curve) usual(load float64) []crowded {
	const apart = 0.02 // as a logarithm
	at := math.Log(load) / apart
	below := math.Floor(at)
	low, high := c.steady(int(below), apart), c.steady(int(below)+1, apart)
	out := make([]crowded, len(low))
	for i := range out {
		out[i] = crowded{low[i].crowd + (at-below)*(high[i].crowd-low[i].crowd), low[i].part}
	}
	return out
}

// steady is how crowded it is at a load of the grid, for more parts where it is more.
func (c *curve) steady(step int, apart float64) (out []crowded) {
	if out = c.known[step]; out != nil {
		return out
	}
	crowd := c.seconds(stretched(c.process, math.Exp(-apart*float64(step))))
	crowd = crowd[len(crowd)/20:]
	sorted := make([]uint32, len(crowd)) // as bits, which are in order where nothing is below zero
	for i, seconds := range crowd {
		sorted[i] = math.Float32bits(float32(max(seconds, 0)))
	}
	stat.SortBy(sorted, func(bits uint32) uint64 { return uint64(bits) })
	from := 0.0
	for _, zone := range []struct {
		to    float64
		parts int
	}{{0.75, 75}, {0.95, 100}, {1, 150}} {
		part := (zone.to - from) / float64(zone.parts)
		for i := range zone.parts {
			at := int((from + part*(float64(i)+0.5)) * float64(len(sorted)))
			out = append(out, crowded{c.log(float64(math.Float32frombits(sorted[at]))), part})
		}
		from = zone.to
	}
	c.known[step] = out
	return out
}
