package search

// pValues returns two p-values of all probes between two loads together, without scouts:
// of the hypothesis that these loads just keep all goals, and of the hypothesis that
// they just miss one. The first is corrected for the number of goals (Bonferroni).
func (s *Search) pValues(low, high float64) (holds, misses float64) {
	holds = 1
	for i, g := range s.Goals {
		var all Evidence
		for _, r := range s.Results {
			if !r.usable() || r.Effort.Scout || r.Load < low || r.Load > high {
				continue
			}
			if r.Verdict == Overrun {
				holds = 0
			}
			all = all.plus(g, r.Goals[i])
		}
		goalHolds, goalMisses := all.pValues(g)
		holds, misses = min(holds, goalHolds*float64(len(s.Goals))), max(misses, goalMisses)
	}
	return holds, misses
}

// interval returns the ends of the confidence interval of the limit; 0 is no end. If a
// load missed, all loads above it would miss. So the probes between a load and the
// bracket count together, and no model is needed.
func (s *Search) interval(low, high float64) (from, to float64) {
	for _, r := range s.Results {
		if !r.usable() {
			continue
		}
		if r.Load <= low && r.Load > from {
			if _, misses := s.pValues(r.Load, low); misses <= intervalAlpha {
				from = r.Load
			}
		}
		if r.Load >= high && high > 0 && (to == 0 || r.Load < to) {
			if holds, _ := s.pValues(high, r.Load); holds <= intervalAlpha {
				to = r.Load
			}
		}
	}
	return from / emptyServerMargin, to * emptyServerMargin
}
