package conclusion

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tacho/metric"
	"tacho/outcome"
)

// serves is the conclusion of levels that are no ladder of loads: what the best of
// them serves. The run has so many levels in all.
func serves(levels []outcome.Level, all int) (of *metric.Summary, text []string) {
	best := 0
	for i := range levels {
		if levels[i].Summary.Throughput.RequestsPerS > levels[best].Summary.Throughput.RequestsPerS {
			best = i
		}
	}
	s := &levels[best].Summary
	if s.Completed == 0 {
		return s, []string{noSuccess(s)}
	}
	alike := repeatsOf(levels, best)
	sentence := fmt.Sprintf("Serves %s requests/s", span(alike, Brief, func(s *metric.Summary) float64 { return s.Throughput.RequestsPerS }))
	if s.Throughput.OutputTokensPerS > 0 {
		sentence += fmt.Sprintf(", %s output tokens/s", span(alike, Brief, func(s *metric.Summary) float64 { return s.Throughput.OutputTokensPerS }))
	}
	if len(alike) > 1 {
		sentence += fmt.Sprintf(" in %d repeats", len(alike))
	}
	if all > len(alike) {
		sentence += " at " + named(&levels[best])
	}
	return s, append([]string{sentence + latency(alike...) + "."}, failures(levels)...)
}

// repeatsOf are the levels that are alike in all but which repeat they are, as one of
// them is; that one alone if it has no repeats.
func repeatsOf(levels []outcome.Level, one int) (out []*metric.Summary) {
	for i := range levels {
		l := &levels[i]
		same := l.Repeat > 0 && levels[one].Repeat > 0 && fmt.Sprint(l.Coordinates) == fmt.Sprint(levels[one].Coordinates)
		if same || i == one {
			out = append(out, &l.Summary)
		}
	}
	return out
}

// span is from where to where a figure of some levels goes.
func span(levels []*metric.Summary, show func(float64) string, figure func(*metric.Summary) float64) string {
	least, most := math.Inf(1), math.Inf(-1)
	for _, s := range levels {
		least, most = min(least, figure(s)), max(most, figure(s))
	}
	if show(least) == show(most) {
		return show(most)
	}
	return show(least) + " to " + show(most)
}

// latency is the middle and the tail of the first token, or of the whole request
// if there are no tokens.
func latency(levels ...*metric.Summary) string {
	for _, m := range []*metric.Metric{metric.TTFT, metric.E2EL} {
		if slices.ContainsFunc(levels, func(s *metric.Summary) bool { return s.Dist(m).Stats == nil }) {
			continue
		}
		name, tail := tailOf(m, levels)
		median := span(levels, Millis, func(s *metric.Summary) float64 { return s.Dist(m).Stats.Median })
		return fmt.Sprintf(", %s p50 is %s and %s %s", strings.ToUpper(m.Name), median, name, span(levels, Millis, tail))
	}
	return ""
}

// leastForP99 is how many requests it takes so that one lies above the 99th
// percentile. The 99th percentile of fewer is their maximum.
const leastForP99 = 100

// tailOf is the 99th percentile, or the maximum of too few requests for one.
func tailOf(m *metric.Metric, levels []*metric.Summary) (name string, of func(*metric.Summary) float64) {
	if slices.ContainsFunc(levels, func(s *metric.Summary) bool { return !enough(m, s) }) {
		return "max", func(s *metric.Summary) float64 { return s.Dist(m).Stats.Max }
	}
	return "p99", func(s *metric.Summary) float64 { return s.Dist(m).Stats.Percentile(99) }
}

// enough says whether a level has a 99th percentile. Results of other tools do not
// always say of how many requests theirs is.
func enough(m *metric.Metric, s *metric.Summary) bool {
	n := s.Dist(m).N
	return n >= leastForP99 || n == 0 || math.IsNaN(s.Dist(m).Stats.Max)
}

// failures says how many requests failed, and their share, if some did.
func failures(levels []outcome.Level) []string {
	failed, all := 0, 0
	for i := range levels {
		s := &levels[i].Summary
		failed, all = failed+s.Failed, all+s.Ended()
	}
	if failed == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s of %s requests failed (%s).", whole(failed), whole(all), percent(float64(failed)/float64(all)))}
}

// evidence is what a claim about a level rests on: the samples of its TTFT, or of
// whole requests if there are no tokens.
func evidence(s *metric.Summary) *Evidence {
	out := &Evidence{Requests: s.Ended()}
	for _, m := range []*metric.Metric{metric.TTFT, metric.E2EL} {
		if d := s.Dist(m); d.Stats != nil {
			out.Effective = d.EffectiveSamples(99)
			break
		}
	}
	return out
}
