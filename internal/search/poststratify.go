package search

import (
	"math"

	"github.com/tacho-bench/tacho/stat"
)

// postStratify weights the requests of the probes near a load for a goal on a mean. By
// random variation a probe has more or fewer requests with long delays than the arrival
// process. The weights correct this (post-stratification by predicted delay).
func (s *Search) postStratify(goal int, load float64) {
	f := s.queues[goal]
	for i := range s.Results {
		r := &s.Results[i]
		if r.weights == nil {
			r.weights = make([][]float64, len(s.Goals))
		}
		r.weights[goal] = nil
		if f.r2 > 0 && r.usable() && f.utilization(r.Load) < maxUtilization && nearness(r.Load, load, rareReach) > minWeight {
			probe := f.logDelays(r.schedule)[r.begin : r.begin+len(r.window)]
			r.weights[goal] = stratumWeights(probe, f.logDelays(stretched(s.simulated(), 1/r.Load)))
		}
	}
}

// stratumWeights returns weights of requests, by their predicted delays and the delays
// in a long schedule. A stratum with too few requests is merged with the next one.
func stratumWeights(probe, long []float64) []float64 {
	out := make([]float64, len(probe))
	for i := range out {
		out[i] = 1
	}
	if len(probe) < scoutRequests {
		return out
	}
	stationary, n := stat.New(long[len(long)/simulatedWarmupDivisor:]), float64(len(probe))
	from, low := 0.0, math.Inf(-1)
	for _, q := range postStrata {
		high := math.Inf(1)
		if (1-q)*n >= minStratumRequests {
			high = stationary.Quantile(q)
		} else {
			q = 1
		}
		members := indicesWithin(probe, low, high)
		if q < 1 && (float64(len(members)) < minStratumRequests || (q-from)*n < minStratumRequests) {
			continue
		}
		for _, k := range members {
			out[k] = min(max((q-from)*n/float64(len(members)), 1/maxStratumWeight), maxStratumWeight)
		}
		if from, low = q, high; q == 1 {
			break
		}
	}
	return out
}

// indicesWithin returns the indices of the values above low and not above high.
func indicesWithin(xs []float64, low, high float64) (indices []int) {
	for i, x := range xs {
		if x > low && x <= high {
			indices = append(indices, i)
		}
	}
	return indices
}
