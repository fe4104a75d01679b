package search

import (
	"math"
	"time"
)

// An Estimate is the usual cost of a search or a sweep, before anything is known about
// the server.
type Estimate struct {
	MinSteps, MaxSteps int // probes or levels
	Shortest, Longest  time.Duration
}

const (
	// usualRange is the assumed ratio of the limit to the first load.
	usualRange = 1000
	// minScouts is the number of scouts of a short search: one holds, and one misses.
	minScouts = 2
	// bracketEnds is the number of ends of a bracket. Each needs a full probe.
	bracketEnds = 2
)

// Estimate returns the usual cost if the server serves rate requests per second at the
// limit. A search is shorter if no load holds or if the server changes. Latency adds to
// the time if five p95 latencies are longer than a full probe.
func (s *Search) Estimate(rate float64) Estimate {
	ratio := float64(usualRange)
	if s.From > 0 && s.To > 0 {
		ratio = s.To / s.From
	}
	scouts := max(int(math.Ceil(math.Log(ratio)/math.Log(scoutStep))), minScouts)
	// Each short probe halves the logarithmic width of the bracket.
	short := int(math.Ceil(math.Log2(math.Log(scoutStep) / math.Log(wideBracket))))
	seconds := func(requests int) time.Duration {
		return time.Duration(float64(requests) / rate * float64(time.Second))
	}
	// A load near the limit takes a full probe. A load farther above it may miss early.
	full, early := max(fullTime, seconds(s.fullRequests())), max(fullTime, seconds(fullMinFactor*scoutRequests))
	e := Estimate{
		MinSteps: minScouts + bracketEnds, MaxSteps: scouts + short + bracketEnds*maxFullProbes,
		Shortest: minScouts*scoutTime + full + early,
		Longest:  undecidedBudgetFactor * max(seconds(budgetRequests), minBudget),
	}
	if s.From == 0 { // the first probe sends one request at a time
		e.MinSteps, e.MaxSteps = e.MinSteps+1, e.MaxSteps+1
	}
	if s.Budget > 0 {
		e.Longest = s.Budget
	}
	e.Shortest = min(e.Shortest, e.Longest)
	return e
}

// Estimate returns the usual cost of a sweep whose levels send for a given time. The
// longest time includes the backlog of overloaded levels: the highest load is at most
// unloadedStep times a load that the server keeps up with, and a load between two
// others at most the square root.
func (s *Sweep) Estimate(level time.Duration) Estimate {
	units := float64(s.Points) + (unloadedStep - 1) + float64(s.Points-1)*(math.Sqrt(unloadedStep)-1)
	return Estimate{s.Points, s.Points, time.Duration(s.Points) * level, time.Duration(units * float64(level))}
}
