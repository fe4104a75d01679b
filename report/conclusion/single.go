package conclusion

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// mostServed returns the index of the level with the highest throughput. If no level has a throughput, it is the level
// with the most requests.
func mostServed(levels []outcome.Level) (best int) {
	figures := func(i int) (rate float64, requests int, served float64) {
		s := &levels[i].Summary
		if levels[i].HasRate() {
			return s.Throughput.RequestsPerS, 0, 0
		}
		return -1, s.Completed, s.Throughput.RequestsPerS
	}
	for i := range levels {
		rate, requests, served := figures(i)
		mostRate, mostRequests, mostServed := figures(best)
		if cmp.Or(cmp.Compare(rate, mostRate), cmp.Compare(requests, mostRequests), cmp.Compare(served, mostServed)) > 0 {
			best = i
		}
	}
	return best
}

// serves is the conclusion of levels without a rising load. It is about the level best. all is the number of levels of
// the run.
func serves(levels []outcome.Level, best, all int) []string {
	l := &levels[best]
	s := &l.Summary
	if s.Completed == 0 {
		return []string{noSuccess(l)}
	}
	repeated := repeatsOf(levels, best)
	alike := make([]*metric.Summary, len(repeated))
	for i := range repeated {
		alike[i] = &repeated[i].Summary
	}
	where, repeats := "", ""
	if all > len(alike) {
		where = " at " + inSentence(NameOf(l))
	}
	if len(alike) > 1 {
		repeats = fmt.Sprintf(" in %d repeats", len(alike))
	}
	tokens := ""
	if s.Throughput.OutputTokensPerS > 0 {
		tokens = span(alike, metric.Brief, func(s *metric.Summary) float64 { return s.Throughput.OutputTokensPerS }) + " output tokens/s"
	}
	switch {
	case !l.HasRate():
		return took(l, alike, where, repeats, tokens)
	case keepsUp(levels, best):
		load := configured(s)
		if where = strings.TrimPrefix(where, " at "+load); where != "" {
			where = " at " + strings.TrimPrefix(strings.TrimPrefix(where, ", "), " at ")
		}
		return []string{"Keeps up with " + load + repeats + where + prefixed(", ", tokens) + latency(alike...) + "."}
	}
	text := "Serves " + span(alike, metric.Brief, func(s *metric.Summary) float64 { return s.Throughput.RequestsPerS })
	if sent := l.Offered(); s.Throughput.RequestsPerS < sent && !s.Config.Interrupted {
		text += " of " + metric.Brief(sent)
	}
	return []string{text + " requests/s" + prefixed(", ", tokens) + repeats + where + latency(alike...) + "."}
}

// standing is the sentence on the SLO of a level, if the level has one.
func standing(s *metric.Summary) []string {
	if s.Config.SLO == "" || s.Completed == 0 {
		return nil
	}
	goal := goalWords(s)
	switch s.Standing() {
	case metric.Met:
		return []string{"Meets " + goal + "."}
	case metric.Missed:
		b := goalBreak(s)
		if b.Metric == failureMetric {
			return []string{fmt.Sprintf("Misses %s: %s of the requests failed.", goal, metric.Percent(b.Value))}
		}
		return []string{fmt.Sprintf("Misses %s: %s %s is %s.", goal, strings.ToUpper(b.Metric), b.Statistic, inUnit(b.Value, b.Unit))}
	}
	return []string{"Whether it meets " + goal + " is not judged."}
}

// keepsUp reports whether the server keeps up with the rate of levels[one] in all its repeats.
func keepsUp(levels []outcome.Level, one int) bool {
	return !slices.ContainsFunc(repeatsOf(levels, one), func(l *outcome.Level) bool {
		return l.Ramp != nil || !l.HasRate() || l.Summary.LimitBound || !l.KeepsUp()
	})
}

// configured names the load of a level by its plan: its rate, or else its concurrency.
func configured(s *metric.Summary) string {
	switch c := &s.Config; {
	case c.RequestRate > 0:
		return loadOf("request-rate", metric.Setting(c.RequestRate))
	case c.MaxConcurrency > 0:
		return loadOf("max-concurrency", metric.Integer(c.MaxConcurrency))
	}
	return ""
}

// took is the sentence for a level without a throughput: the number of its requests and their time.
func took(l *outcome.Level, alike []*metric.Summary, where, repeats, tokens string) []string {
	s := &l.Summary
	if where == "" && s.Completed > 1 {
		where = prefixed(" at ", configured(s))
	}
	text, reason := plural(s.Completed, "request"), "Too few requests for a rate."
	switch {
	case l.Burst() && s.Completed > 1:
		text += " at once"
		if first, rest, more := strings.Cut(NameOf(l), ", "); where != "" && (strings.HasPrefix(first, "burst") || first == allAtOnce) {
			if where = ""; more {
				where = " at " + rest
			}
		}
		reason = "Too short for a rate."
		if s.Completed >= leastForP99 {
			repeats, reason = repeats+prefixed(", on average ", tokens), ""
		}
	case s.Completed == 1:
		reason = "One request shows no rate and no percentile."
	}
	text += where + " took " + span(alike, metric.Duration, func(s *metric.Summary) float64 { return 1000 * s.DurationS }) + repeats + latency(alike...) + "."
	return []string{strings.TrimSpace(text + " " + reason)}
}

// prefixed returns a text after a prefix, or nothing if the text is empty.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// repeatsOf returns the repeats of levels[one], including levels[one] itself.
func repeatsOf(levels []outcome.Level, one int) (out []*outcome.Level) {
	for i := range levels {
		l := &levels[i]
		same := l.Repeat > 0 && levels[one].Repeat > 0 && fmt.Sprint(l.Coordinates) == fmt.Sprint(levels[one].Coordinates)
		if same || i == one {
			out = append(out, l)
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
		if !levels[0].HasMedian() {
			if len(levels) == 1 && levels[0].Completed == 1 {
				name = "of"
			}
			return ", " + strings.ToUpper(m.Name) + " " + name + " " + span(levels, metric.Duration, tail)
		}
		median := span(levels, metric.Duration, func(s *metric.Summary) float64 { return s.Dist(m).Stats.Median })
		return fmt.Sprintf(", %s p50 %s and %s %s", strings.ToUpper(m.Name), median, name, span(levels, metric.Duration, tail))
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
	return n >= leastForP99 || n == 0 || !(s.Dist(m).Stats.Max > 0)
}

// failedOf returns the numbers of failed and of finished requests.
func failedOf(levels []outcome.Level) (failed, all int) {
	for i := range levels {
		s := &levels[i].Summary
		failed, all = failed+s.Failed, all+s.Ended()
	}
	return failed, all
}

// Failing reports whether too many requests of every level failed.
func Failing(levels []outcome.Level) bool {
	return !slices.ContainsFunc(levels, func(l outcome.Level) bool {
		failed, all := failedOf([]outcome.Level{l})
		return float64(failed) <= maxFailedShare*float64(all)
	})
}

// withFailures adds the sentence about the failed requests of levels. It comes first if more requests failed at the
// levels of the first sentence than a level may have.
func withFailures(text []string, levels, first []outcome.Level) []string {
	n, _ := failedOf(levels)
	behind, of := failedOf(first)
	switch {
	case n == 0 || levels[0].Summary.Completed == 0 && len(levels) == 1:
		return text
	case float64(behind) > maxFailedShare*float64(of):
		return append([]string{failed(levels)}, text...)
	}
	return append(text, failed(levels))
}

// failed is the sentence about the failed requests of levels: their number, share and most frequent cause.
func failed(levels []outcome.Level) string {
	n, all := failedOf(levels)
	return fmt.Sprintf("%s of %s requests failed (%s)%s.", metric.Integer(n), metric.Integer(all), metric.Percent(float64(n)/float64(all)), cause(levels))
}

// cause returns the most frequent cause of failed requests and its message, as the end of a sentence.
func cause(levels []outcome.Level) string {
	type kind struct {
		cause  tacho.Cause
		status int
	}
	count, example := map[kind]int{}, map[kind]string{}
	var most kind
	for i := range levels {
		for _, f := range levels[i].Summary.Failures {
			k := kind{f.Cause, f.Status}
			if count[k] += f.Count; example[k] == "" {
				example[k] = f.Example
			}
			if count[k] > count[most] {
				most = k
			}
		}
	}
	if count[most] == 0 {
		return ""
	}
	text := ", most often with " + strings.ReplaceAll(string(most.cause), "-", " ")
	if len(count) == 1 {
		text = ", all with " + string(most.cause)
	}
	if most.status != 0 {
		text += fmt.Sprintf(" %d", most.status)
	}
	return text + prefixed(": ", strings.TrimRight(clip(example[most], mostName), ". "))
}

// slowStart is the sentence about first requests that were slower than the others, because the figures of the level
// contain them. all is the number of levels of the run.
func slowStart(l *outcome.Level, all int) []string {
	s := &l.Summary
	slow := slices.ContainsFunc(s.Verdict.Reasons, func(r metric.Reason) bool { return r.Code == metric.SlowStart })
	if !slow || s.Steady == nil || s.Steady.WarmUp == nil {
		return nil
	}
	text := s.Steady.WarmUp.Text() + "."
	if all > 1 {
		return []string{"At " + inSentence(NameOf(l)) + " " + text}
	}
	return []string{"T" + strings.TrimPrefix(text, "t")}
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
