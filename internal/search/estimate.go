package search

import (
	"math"
	"time"
)

// An Estimate is the usual cost of a sweep, before anything is known about the server.
type Estimate struct{ Shortest, Longest time.Duration }

const (
	// usualBatch is the assumed ratio of the limit to the load of one request at a time.
	usualBatch = 16
	// usualScouts is the usual number of scouts, and usualFull of full probes.
	usualScouts, usualFull = 4, 4
)

// Estimate returns the usual time of the search, after its first probe. known is false
// before, and if one request at a time misses the SLO.
func (s *Search) Estimate() (usual time.Duration, known bool) {
	if len(s.Results) != 1 || s.Results[0].Verdict == Void || s.missed(s.Results[0]) {
		return 0, false
	}
	r := s.Results[0]
	rate := max(r.Served, s.From)
	if r.Alone {
		rate *= usualBatch
	}
	if s.To > 0 && s.Kind == Rate {
		rate = min(rate, s.To)
	}
	requests := time.Duration(float64(s.fullRequests()) / enoughShare / max(rate, epsilon) * float64(time.Second))
	scouts := usualScouts * max(scoutTime, scoutMinLatencies*r.LatencyP95)
	return r.Took + scouts + s.observeTime(rate) + usualFull*max(s.atMost(fullTime, fullTimeRequests, rate), minLatencies*r.LatencyP95, requests), true
}

// Estimate returns the usual cost of a sweep whose levels send for a given time. The
// longest time includes the backlog of overloaded levels: the highest load is at most
// unloadedStep times a load that the server keeps up with, and a load between two
// others at most the square root.
func (s *Sweep) Estimate(level time.Duration) Estimate {
	units := float64(s.Points) + (unloadedStep - 1) + float64(s.Points-1)*(math.Sqrt(unloadedStep)-1)
	return Estimate{time.Duration(s.Points) * level, time.Duration(units * float64(level))}
}
