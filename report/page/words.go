package page

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tacho/metric"
	"tacho/outcome"
)

// Answer is what a run came to, in sentences made of its own numbers. No cause is
// named that they do not show.
func Answer(levels []outcome.Level) []string {
	best := -1
	for i := range levels {
		if t := levels[i].Summary.Throughput; t != nil && (best < 0 || t.RequestsPerS > levels[best].Summary.Throughput.RequestsPerS) {
			best = i
		}
	}
	if best < 0 {
		return []string{"Nothing was measured."}
	}
	s := &levels[best].Summary
	if s.Completed == 0 {
		return []string{noSuccess(s)}
	}
	alike := repeatsOf(levels, best)
	serves := fmt.Sprintf("Serves %s requests/s", span(alike, three, func(s *metric.Summary) float64 { return s.Throughput.RequestsPerS }))
	if s.Throughput.OutputTokensPerS > 0 {
		serves += fmt.Sprintf(", %s output tokens/s", span(alike, three, func(s *metric.Summary) float64 { return s.Throughput.OutputTokensPerS }))
	}
	if s.Verdict.Severity == metric.Predicted {
		serves = metric.PredictedWord + serves
	}
	at, next := outcome.Knee(levels)
	if at == nil {
		if len(alike) > 1 {
			serves += fmt.Sprintf(" in %d repeats", len(alike))
		}
		if len(levels) > len(alike) {
			serves += " at " + named(&levels[best])
		}
		return append([]string{serves + latency(alike...) + "."}, failures(levels)...)
	}
	good := &levels[*at]
	out := []string{serves + fmt.Sprintf(" at most. At %s%s.", named(good), latency(&good.Summary))}
	if next != nil {
		out = append(out, beyond(good, &levels[*next]))
	} else {
		out = append(out, "It kept up at every level: more load may give more.")
	}
	return append(out, failures(levels)...)
}

// noSuccess is what there is to say where the best level has no request that succeeded.
func noSuccess(s *metric.Summary) string {
	text := fmt.Sprintf("None of %s requests succeeded.", whole(s.Requests))
	if s.Failed == 0 {
		text = fmt.Sprintf("None of %s requests had finished when the run was stopped.", whole(s.Requests))
	}
	if s.Verdict.Severity == metric.Predicted {
		return metric.PredictedWord + text
	}
	return text
}

// repeatsOf are the levels that are alike in all but which repeat they are, as one of
// them is; that one alone where it has no repeats.
func repeatsOf(levels []outcome.Level, one int) (out []*metric.Summary) {
	for i := range levels {
		l := &levels[i]
		same := l.Repeat > 0 && levels[one].Repeat > 0 && fmt.Sprint(l.Coordinates) == fmt.Sprint(levels[one].Coordinates)
		if (same || i == one) && l.Summary.Throughput != nil {
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
// where there are no tokens.
func latency(levels ...*metric.Summary) string {
	for _, m := range []*metric.Metric{metric.TTFT, metric.E2EL} {
		if slices.ContainsFunc(levels, func(s *metric.Summary) bool { return s.Dist(m).Stats == nil }) {
			continue
		}
		median := span(levels, duration, func(s *metric.Summary) float64 { return s.Dist(m).Stats.Median })
		tail := span(levels, duration, func(s *metric.Summary) float64 { return s.Dist(m).Stats.Percentile(99) })
		return fmt.Sprintf(", %s p50 is %s and p99 %s", strings.ToUpper(m.Name), median, tail)
	}
	return ""
}

// beyond says what the first level past the knee costs.
func beyond(good, bad *outcome.Level) string {
	var costs []string
	for _, m := range []*metric.Metric{metric.TTFT, metric.TPOT} {
		before, after := good.Summary.Dist(m).Stats, bad.Summary.Dist(m).Stats
		if before != nil && after != nil {
			costs = append(costs, fmt.Sprintf("%s p50 goes from %s to %s", strings.ToUpper(m.Name), duration(before.Median), duration(after.Median)))
		}
	}
	text := fmt.Sprintf("At %s little more is served", named(bad))
	if sent := bad.Offered(); sent > 0 {
		text = fmt.Sprintf("At %s it falls behind: %s of %s requests/s sent are served", named(bad), three(bad.Summary.Throughput.RequestsPerS), three(sent))
	}
	if len(costs) > 0 {
		text += ", and " + strings.Join(costs, ", ")
	}
	return text + "."
}

// failures says how many requests failed, where some did.
func failures(levels []outcome.Level) []string {
	failed, all := 0, 0
	for i := range levels {
		failed, all = failed+levels[i].Summary.Failed, all+levels[i].Summary.Requests
	}
	if failed == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s of %s requests failed.", whole(failed), whole(all))}
}

// loadWords say a number of each option that is a load.
var loadWords = map[string]string{"request-rate": "requests/s", "max-concurrency": "requests at a time", "num-prompts": "requests at once"}

// named is a level in words.
func named(l *outcome.Level) string {
	var words []string
	for _, flag := range l.Flags() {
		option, value := flag.Name, flag.Value
		if n, err := strconv.Atoi(value); err == nil {
			value = whole(n)
		}
		if word, ok := loadWords[option]; ok {
			words = append(words, value+" "+word)
		} else {
			words = append(words, option+" "+value)
		}
	}
	if len(words) == 0 {
		return Clip(l.Name)
	}
	return Clip(strings.Join(words, ", "))
}

// three has three significant digits.
func three(v float64) string {
	if v >= 1000 {
		digits := math.Pow(10, math.Floor(math.Log10(v))-2)
		return whole(int(math.Round(v/digits) * digits))
	}
	return strconv.FormatFloat(brief3(v), 'f', -1, 64)
}

func brief3(v float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil {
		return 0
	}
	return out
}

// whole has commas between thousands.
func whole(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func duration(ms float64) string {
	if ms >= 1000 {
		return three(ms/1000) + " s"
	}
	return three(ms) + " ms"
}
