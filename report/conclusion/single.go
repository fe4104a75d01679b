package conclusion

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// serves is the conclusion of levels without a rising load: the throughput of the best
// level, and its index in levels. all is the number of levels of the run.
func serves(levels []outcome.Level, all int) (best int, text []string) {
	for i := range levels {
		if levels[i].Summary.Throughput.RequestsPerS > levels[best].Summary.Throughput.RequestsPerS {
			best = i
		}
	}
	s := &levels[best].Summary
	if s.Completed == 0 {
		return best, []string{noSuccess(s)}
	}
	alike := repeatsOf(levels, best)
	sentence := fmt.Sprintf("Serves %s requests/s", span(alike, metric.Brief, func(s *metric.Summary) float64 { return s.Throughput.RequestsPerS }))
	if s.Throughput.OutputTokensPerS > 0 {
		sentence += fmt.Sprintf(", %s output tokens/s", span(alike, metric.Brief, func(s *metric.Summary) float64 { return s.Throughput.OutputTokensPerS }))
	}
	if len(alike) > 1 {
		sentence += fmt.Sprintf(" in %d repeats", len(alike))
	}
	if all > len(alike) {
		sentence += " at " + inSentence(named(&levels[best]))
	}
	return best, append([]string{sentence + latency(alike...) + "."}, failures(levels)...)
}

// repeatsOf returns the repeats of levels[one], including levels[one] itself.
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

// span returns the range of a figure over levels.
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

// latency returns the median and the tail of TTFT, or of E2EL if there are no tokens.
func latency(levels ...*metric.Summary) string {
	for _, m := range []*metric.Metric{metric.TTFT, metric.E2EL} {
		if slices.ContainsFunc(levels, func(s *metric.Summary) bool { return s.Dist(m).Stats == nil }) {
			continue
		}
		name, tail := tailOf(m, levels)
		median := span(levels, metric.Duration, func(s *metric.Summary) float64 { return s.Dist(m).Stats.Median })
		return fmt.Sprintf(", %s p50 is %s and %s %s", strings.ToUpper(m.Name), median, name, span(levels, metric.Duration, tail))
	}
	return ""
}

// leastForP99 is the number of requests from which one lies above the 99th percentile.
// The 99th percentile of fewer requests is their maximum.
const leastForP99 = 100

// tailOf returns the 99th percentile, or the maximum if a level has too few requests.
func tailOf(m *metric.Metric, levels []*metric.Summary) (name string, of func(*metric.Summary) float64) {
	if slices.ContainsFunc(levels, func(s *metric.Summary) bool { return !enough(m, s) }) {
		return "max", func(s *metric.Summary) float64 { return s.Dist(m).Stats.Max }
	}
	return "p99", func(s *metric.Summary) float64 { return s.Dist(m).Stats.Percentile(99) }
}

// enough reports whether a level has a 99th percentile. Results of other tools may not
// state the number of requests; they count as enough.
func enough(m *metric.Metric, s *metric.Summary) bool {
	n := s.Dist(m).N
	return n >= leastForP99 || n == 0 || math.IsNaN(s.Dist(m).Stats.Max)
}

// failures returns a sentence with the number and share of failed requests, or nothing
// if no request failed.
func failures(levels []outcome.Level) []string {
	failed, all := 0, 0
	for i := range levels {
		s := &levels[i].Summary
		failed, all = failed+s.Failed, all+s.Ended()
	}
	if failed == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s of %s requests failed (%s).", metric.Integer(failed), metric.Integer(all), metric.Percent(float64(failed)/float64(all)))}
}

// evidence counts the requests behind a claim about a level. The effective sample size
// is of TTFT, or of E2EL if there are no tokens.
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
