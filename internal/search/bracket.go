package search

import (
	"cmp"
	"slices"
)

// A pool is a load of an isotonic regression, or several successive loads whose order
// contradicts their miss ratios.
type pool struct {
	loads       []float64
	sum, weight float64
}

func (p pool) mean() float64 { return p.sum / p.weight }

// merge returns a pool of the loads of both.
func (p pool) merge(o pool) pool {
	return pool{slices.Concat(p.loads, o.loads), p.sum + o.sum, p.weight + o.weight}
}

// isotonic returns the miss ratio of a goal at each load, by an isotonic regression over
// all probes but scouts (pool adjacent violators, weighted by requests).
func (s *Search) isotonic(goal int) map[float64]float64 {
	var pools []pool
	for _, next := range s.byLoad(goal) {
		for n := len(pools); n > 0 && pools[n-1].mean() > next.mean(); n = len(pools) {
			next, pools = pools[n-1].merge(next), pools[:n-1]
		}
		pools = append(pools, next)
	}
	out := map[float64]float64{}
	for _, p := range pools {
		for _, load := range p.loads {
			out[load] = p.mean()
		}
	}
	return out
}

// byLoad pools the probes of each load, by rising load.
func (s *Search) byLoad(goal int) (out []pool) {
	for _, r := range s.Results {
		e := r.Goals[goal]
		if !r.usable() || r.Effort.Scout || e.Count == 0 {
			continue
		}
		p := pool{[]float64{r.Load}, min(e.missRatio(s.Goals[goal]), maxMissRatio) * e.Count, e.Count}
		i, same := slices.BinarySearchFunc(out, r.Load, func(p pool, load float64) int { return cmp.Compare(p.loads[0], load) })
		if same {
			out[i] = out[i].merge(p)
		} else {
			out = slices.Insert(out, i, p)
		}
	}
	return out
}

// missRatios returns the highest isotonic miss ratio of all goals at each load.
func (s *Search) missRatios() map[float64]float64 {
	out := map[float64]float64{}
	for i := range s.Goals {
		for load, ratio := range s.isotonic(i) {
			out[load] = max(out[load], ratio)
		}
	}
	return out
}

// bracket returns the highest load that seems to hold and the lowest load above it that
// seems to miss; 0 if there is none. Scouts count only far from longer probes.
func (s *Search) bracket() (low, high float64) {
	ratios := s.missRatios()
	highestHold := func(below float64) (load float64) {
		for l, ratio := range ratios {
			if ratio <= 1 && (below == 0 || l < below) {
				load = max(load, l)
			}
		}
		return load
	}
	low = highestHold(0)
	high = s.lowestMiss(ratios, low)
	if high > 0 && low >= high { // a lower load was overrun
		low = highestHold(high)
	}
	low = max(low, s.highestScout(high/scoutMargin))
	if low == 0 {
		low = s.highestScout(high)
	}
	return low, high
}

// highestScout returns the highest load below another at which a scout held; 0 if there
// is none.
func (s *Search) highestScout(below float64) (load float64) {
	for _, r := range s.Results {
		if r.usable() && r.Effort.Scout && !s.missed(r) && (below == 0 || r.Load < below) {
			load = max(load, r.Load)
		}
	}
	return load
}

// lowestMiss returns the lowest load that seems to miss, or that the client cannot send;
// 0 if there is none.
func (s *Search) lowestMiss(ratios map[float64]float64, low float64) (high float64) {
	consider := func(load float64) {
		if high == 0 || load < high {
			high = load
		}
	}
	for load, ratio := range ratios {
		if ratio > 1 {
			consider(load)
		}
	}
	for _, r := range s.Results {
		if s.cannotSend(r) || r.usable() && r.Load > low && (r.Verdict == Overrun || r.Effort.Scout && s.missed(r)) {
			consider(r.Load)
		}
	}
	return high
}

// onlyScouted reports whether a load had no probe but scouts.
func (s *Search) onlyScouted(load float64) bool {
	return !slices.ContainsFunc(s.Results, func(r Result) bool { return r.usable() && r.Load == load && !r.Effort.Scout })
}

// fullProbes counts the probes of a load with enough requests.
func (s *Search) fullProbes(load float64) (n int) {
	for _, r := range s.Results {
		n += int(indicator(r.usable() && r.Load == load && r.Enough))
	}
	return n
}

// missesSince counts the failed probes of higher loads since a load was measured
// last, without scouts.
func (s *Search) missesSince(load float64) (n int) {
	for _, r := range slices.Backward(s.Results) {
		if r.usable() && r.Load == load {
			break
		}
		n += int(indicator(r.usable() && !r.Effort.Scout && r.Load > load && s.missed(r)))
	}
	return n
}
