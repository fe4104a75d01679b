package search

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// The fit. Every request of a probe tells at which load it would just have kept
// its goal, if latency grows as a power of the load; the limit is the load below
// which as many of these lie as the goal lets miss it. So all requests that were
// ever sent near the limit count together, and what was seen farther away counts
// less, for the power changes. How sure that is shows when the same is done with
// parts of the probes, drawn by chance: requests that are served together resemble
// each other, so that whole stretches of a probe are drawn.
const (
	fitReach   = 0.12 // how far away what was seen still counts, of the logarithm of the load
	fitPower   = 3.0  // the power, if nobody knew better
	leastPower = 0.7
	mostPower  = 15.0
	sharePower = 12.0 // the same of the share of requests that miss
	stretches  = 8    // of a probe
	redraws    = 120
)

// A limit is where the load breaks the SLO, and which goal breaks first; goal is
// -1 where none does.
type limit struct {
	load float64
	goal int
}

// limits are the best guess of the limit, and what it would be by chance.
func (s *Search) limits() (best limit, chance []float64) {
	windows := make([][]seen, len(s.Results))
	for i, r := range s.Results {
		if r.tells() {
			windows[i] = r.window
		}
	}
	best = s.cross(windows)
	rng := rand.New(rand.NewPCG(1, uint64(len(s.Results))))
	drawn := make([][]seen, len(windows))
	for range redraws {
		for i, w := range windows {
			drawn[i] = redraw(rng, w)
		}
		chance = append(chance, s.cross(drawn).load)
	}
	slices.Sort(chance)
	return best, chance
}

// redraw is a probe made of stretches of a probe.
func redraw(rng *rand.Rand, window []seen) []seen {
	n := len(window)
	if n == 0 {
		return nil
	}
	out := make([]seen, 0, n+stretches)
	length := (n + stretches - 1) / stretches
	for len(out) < n {
		from := rng.IntN(n)
		for k := range length {
			out = append(out, window[(from+k)%n])
		}
	}
	return out[:n]
}

// cross is the load at which the first goal breaks, by what is in the windows of
// the probes.
func (s *Search) cross(windows [][]seen) limit {
	low, high := s.ends()
	at := math.Sqrt(low * high)
	best := limit{}
	for range 8 { // what counts most depends on where it is
		best = limit{math.Inf(1), -1}
		for i := range s.Goals {
			if x := s.crossing(i, windows, at); x < best.load {
				best = limit{x, i}
			}
		}
		best.load = min(max(best.load, low), high)
		if math.Abs(best.load/at-1) < 0.002 {
			break
		}
		at = math.Sqrt(at * best.load)
	}
	return best
}

// A share is one of many observations, and how much it counts.
type share struct{ at, weight float64 }

// crossing is the load at which goal i breaks; infinity where it was never in
// danger. What was seen near at counts most.
func (s *Search) crossing(i int, windows [][]seen, at float64) float64 {
	g := s.Goals[i]
	power := s.power(i, windows, at)
	var all []share
	sum, missed, mean := 0.0, 0.0, 0.0
	for k, w := range windows {
		load := s.Results[k].Load
		weight := nearness(load, at)
		grow, more := math.Pow(at/load, power), math.Pow(at/load, sharePower)
		for j := range w {
			m := &w[j].marks[i]
			if m.n == 0 {
				continue
			}
			sum += weight
			missed += weight * more * m.miss / m.n
			if g.Mean {
				mean += weight * g.grow(m.sum/m.n, grow)
			} else if !g.counted() {
				all = append(all, share{math.Log(load) + m.room/power, weight})
			}
		}
	}
	switch {
	case sum == 0:
		return math.Inf(1)
	case g.Mean:
		return at * math.Pow(g.room(mean/sum), 1/power)
	case g.counted():
		return at * math.Pow(g.Share*sum/missed, 1/sharePower)
	}
	return math.Exp(weightedQuantile(all, g.Share*sum))
}

// counted says whether only the share of the values counts that miss: there are
// no others, or too many.
func (g Goal) counted() bool { return g.Metric == nil || g.Metric.PerEvent && !g.Mean }

// grow is what becomes of a value of the goal when latencies grow by a factor.
func (g Goal) grow(value, factor float64) float64 {
	if g.Floor {
		return value / factor
	}
	return value * factor
}

// room is by which factor latencies may grow until a value breaks the goal.
func (g Goal) room(value float64) float64 {
	if g.Floor {
		return value / g.Limit
	}
	return g.Limit / max(value, 1e-9)
}

// nearness is how much a load counts for one that it is near to.
func nearness(load, at float64) float64 {
	far := math.Log(load/at) / fitReach
	return math.Exp(-far*far/2) + 1e-6
}

func weightedQuantile(all []share, weight float64) float64 {
	slices.SortFunc(all, func(a, b share) int { return cmp.Compare(a.at, b.at) })
	for _, x := range all {
		if weight -= x.weight; weight < 0 {
			return x.at
		}
	}
	return math.Inf(1)
}

// power is with which power of the load the value of a goal grows, near a load:
// the slope of a line through the probes, drawn towards the usual one.
func (s *Search) power(i int, windows [][]seen, at float64) float64 {
	var n, x, y, xx, xy float64
	for k, w := range windows {
		r := s.Results[k]
		if len(w) < scoutSize || !(r.Goals[i].Pressure > 0) || math.IsInf(r.Goals[i].Pressure, 0) {
			continue
		}
		far := math.Log(r.Load / at)
		weight := float64(len(w)) * math.Exp(-far*far/(8*fitReach*fitReach))
		pressure := math.Log(r.Goals[i].Pressure)
		n, x, y = n+weight, x+weight*far, y+weight*pressure
		xx, xy = xx+weight*far*far, xy+weight*far*pressure
	}
	// A usual line counts as much as this, in requests times squared distance.
	const usual = 1.0
	if n > 0 {
		xx, xy = xx-x*x/n, xy-x*y/n
	}
	return min(max((xy+usual*fitPower)/(xx+usual), leastPower), mostPower)
}
