package cli

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/internal/search"
	"github.com/tacho-bench/tacho/plan"
)

// searchEstimate describes the longest time of a search. It returns an empty string for a search in virtual time, which
// takes less. After its first probe, the search estimates its time.
func searchEstimate(s *search.Search, p *plan.Plan) string {
	if p.Virtual {
		return ""
	}
	return "The search takes at most " + shortDuration(s.Budget) + " (--budget)."
}

// sweepEstimate describes the number of levels and the usual time of a sweep, or returns
// an empty string if the plan has no sweep.
func sweepEstimate(p *plan.Plan) string {
	if p.Swept() == "" {
		return ""
	}
	sweeps := len(p.Levels()) // Levels has one level per sweep and repeat
	levels := fmt.Sprintf("At most %d levels.", sweeps*p.SweepPoints)
	level := p.MaxSeconds.Duration()
	switch {
	case p.MaxSeconds > 0:
	case run.HasLevelSize(p):
		return levels + " The time of a level depends on its load, because its number of requests is fixed. --max-seconds bounds the time."
	default:
		level = run.SweepSeconds * time.Second
	}
	e := (&search.Sweep{Points: sweeps * p.SweepPoints}).Estimate(level)
	return fmt.Sprintf("%s The sweep usually takes %s: %s per level, and the time until all requests are answered. --max-seconds and --sweep-points change the time.",
		levels, span(e), level)
}

// shortDuration writes a time as flags accept it, without zeros.
func shortDuration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}

// span describes the time of an estimate in full seconds, minutes or hours.
func span(e search.Estimate) string {
	short, long, unit := e.Shortest.Seconds(), e.Longest.Seconds(), "s"
	switch {
	case e.Longest > 2*time.Hour && e.Shortest > time.Hour:
		short, long, unit = e.Shortest.Hours(), e.Longest.Hours(), "h"
	case e.Longest > 2*time.Hour:
		return fmt.Sprintf("%.0f min to %.0f h", max(math.Floor(e.Shortest.Minutes()), 1), math.Ceil(e.Longest.Hours()))
	case e.Longest > 2*time.Minute:
		short, long, unit = e.Shortest.Minutes(), e.Longest.Minutes(), "min"
	}
	short, long = max(math.Floor(short), 1), math.Ceil(long)
	if short >= long {
		return fmt.Sprintf("up to %.0f %s", long, unit)
	}
	return fmt.Sprintf("%.0f to %.0f %s", short, long, unit)
}
