package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// warnings returns reasons why sides may differ besides the intended change.
func warnings(sides []Side, groups []group) []string {
	var out []string
	for _, fact := range []struct {
		what string
		of   func(*outcome.Run) string
		do   string
	}{
		{"clients", func(r *outcome.Run) string { return strings.TrimSpace(r.Tool + " " + r.Version) }, "their definitions may differ: see tacho metrics"},
		{"models", func(r *outcome.Run) string { return r.Model }, "they do different work"},
		{"tokenizers", func(r *outcome.Run) string { return r.Tokenizer }, "they count tokens differently"},
		{"workloads", func(r *outcome.Run) string { return r.Dataset }, "they were asked for different work"},
		{"clocks", clock, "their times are not equally exact"},
		{"sources", source, "differences include the errors of the model"},
		{"verdicts", verdicts, "read the reasons with tacho report"},
	} {
		if text := differing(sides, fact.of); text != "" {
			out = append(out, fmt.Sprintf("%s differ (%s): %s", fact.what, text, fact.do))
		}
	}
	return slices.Concat(out, sameRuns(sides), unknownBuilds(sides), durations(groups), lengths(groups), lengthSpreads(groups), shapes(groups), lacking(sides))
}

// sameRuns names sides that contain the same run.
func sameRuns(sides []Side) (out []string) {
	type identity struct {
		name  string
		began time.Time
	}
	seen := map[identity]string{}
	for _, s := range sides {
		for i := range s.Runs {
			r := &s.Runs[i]
			if r.Name == "" || r.Began.IsZero() {
				continue
			}
			id := identity{r.Name, r.Began}
			if other, ok := seen[id]; ok {
				out = append(out, fmt.Sprintf("%s and %s contain the same run, %s: it cannot differ from itself", other, s.Name, r.Name))
			}
			seen[id] = s.Name
		}
	}
	return out
}

// unknownBuilds names the sides measured by a build without a commit. All such builds have the same
// version.
func unknownBuilds(sides []Side) []string {
	var names []string
	for _, s := range sides {
		if slices.ContainsFunc(s.Runs, func(r outcome.Run) bool { return r.Tool == "tacho" && outcome.UnknownBuild(r.Version) }) {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the build of tacho is unknown (%s), so definitions may differ: use a release, or build from a checkout", strings.Join(names, ", "))}
}

// lacking names the levels with missing records, on all sides.
func lacking(sides []Side) (out []string) {
	for _, s := range sides {
		for i := range s.Runs {
			for k := range s.Runs[i].Levels {
				l := &s.Runs[i].Levels[k]
				if why := l.LacksRecords(); why != "" {
					out = append(out, fmt.Sprintf("%s, %s is %s: %s", s.Name, cmp.Or(placeName(l), "the only level"), l.Summary.Verdict.Severity, why))
				}
			}
		}
	}
	return out
}

// differing lists a fact of each side if the sides differ. A side without the fact does not count as
// different.
func differing(sides []Side, of func(*outcome.Run) string) string {
	var sideFacts []string
	values := map[string]bool{}
	for _, s := range sides {
		var facts []string
		for i := range s.Runs {
			if fact := of(&s.Runs[i]); fact != "" && !slices.Contains(facts, fact) {
				facts = append(facts, fact)
			}
		}
		slices.Sort(facts)
		fact := strings.Join(facts, " and ")
		sideFacts = append(sideFacts, cmp.Or(fact, "unknown"))
		if fact != "" {
			values[fact] = true
		}
	}
	if len(values) < 2 {
		return ""
	}
	return strings.Join(sideFacts, ", ")
}

// source returns whether a run was measured or predicted.
func source(r *outcome.Run) string {
	if r.Predicted() {
		return string(metric.Predicted)
	}
	if r.Simulated() {
		return outcome.SimulatedWord
	}
	return "measured"
}

func clock(r *outcome.Run) string {
	if len(r.Levels) == 0 {
		return ""
	}
	return r.Levels[0].Summary.Clock.Name
}

// verdicts returns the worst verdict of a run.
func verdicts(r *outcome.Run) string {
	worst := ""
	order := []metric.Severity{metric.Unjudged, metric.Valid, metric.Predicted, metric.Degraded, metric.Invalid}
	at := -1
	for i := range r.Levels {
		if k := slices.Index(order, r.Levels[i].Summary.Verdict.Severity); k > at {
			at, worst = k, string(order[k])
		}
	}
	return worst
}

// durations names the level whose runs differ most in their number of requests.
func durations(groups []group) []string {
	mean := func(levels []*outcome.Level) (n float64) {
		for _, l := range levels {
			n += float64(l.Summary.Ended()) / float64(len(levels))
		}
		return n
	}
	worst, where := lengthsDiffer, ""
	for _, g := range groups {
		first := mean(g.levels[0])
		for _, levels := range g.levels[1:] {
			other := mean(levels)
			if ratio := max(first, other) / min(first, other); ratio > worst && first > 0 && other > 0 {
				worst, where = ratio, fmt.Sprintf("%s and %s requests at %s", metric.Brief(first), metric.Brief(other), g.name)
			}
		}
	}
	if where == "" {
		return nil
	}
	return []string{fmt.Sprintf("runs differ in length (%s): the start and a growing queue weigh more in the shorter one", where)}
}

// lengths names levels with different mean lengths of prompts or answers.
func lengths(groups []group) []string {
	var out []string
	for _, of := range []struct {
		what   string
		tokens func(*metric.Summary) int
	}{
		{"prompts", func(s *metric.Summary) int { return s.Tokens.Input }},
		{"answers", func(s *metric.Summary) int { return s.Tokens.Output }},
	} {
		worst, where := 0.0, ""
		for _, g := range groups {
			first, ok := meanLength(g.levels[0], of.tokens)
			for _, levels := range g.levels[1:] {
				if other, too := meanLength(levels, of.tokens); ok && too && first > 0 && math.Abs(other/first-1) > math.Abs(worst) {
					worst, where = other/first-1, fmt.Sprintf("%s and %s tokens at %s", metric.Brief(first), metric.Brief(other), g.name)
				}
			}
		}
		if math.Abs(worst) > 0.02 {
			out = append(out, fmt.Sprintf("%s differ in length by up to %s (%s): latencies differ with them", of.what, metric.Percent(math.Abs(worst)), where))
		}
	}
	return out
}

// spreadWithin is the largest difference of the variation of lengths in the same workload, relative to
// the mean. A few hundred requests do not show it more precisely.
const spreadWithin = 0.25

// lengthSpreads names levels in which lengths vary more on one side, although their means are equal.
func lengthSpreads(groups []group) []string {
	var out []string
	for _, of := range []struct{ what, metric string }{{"prompts", "input_tokens"}, {"answers", "output_tokens"}} {
		worst, where := 0.0, ""
		for _, g := range groups {
			first, ok := variation(g.levels[0], of.metric)
			for _, levels := range g.levels[1:] {
				if other, too := variation(levels, of.metric); ok && too && math.Abs(other-first) > worst {
					worst, where = math.Abs(other-first), fmt.Sprintf("by %s and %s of the mean at %s", metric.Percent(first), metric.Percent(other), g.name)
				}
			}
		}
		if worst > spreadWithin {
			out = append(out, fmt.Sprintf("lengths of %s vary differently (%s): long requests delay the others", of.what, where))
		}
	}
	return out
}

// variation returns the standard deviation of lengths relative to their mean.
func variation(levels []*outcome.Level, name string) (float64, bool) {
	for _, l := range levels {
		if stats := l.Summary.Dist(metric.Named(name)).Stats; stats != nil && stats.Mean > 0 {
			return stats.Std / stats.Mean, true
		}
	}
	return 0, false
}

// shapes names levels with different burstiness or different shared prefixes.
func shapes(groups []group) []string {
	var out []string
	for _, g := range groups {
		if len(g.levels[0]) == 0 {
			continue
		}
		a := &g.levels[0][0].Summary.Config
		for _, levels := range g.levels[1:] {
			if len(levels) == 0 {
				continue
			}
			b := &levels[0].Summary.Config
			if x, y := a.Burstiness, b.Burstiness; x > 0 && y > 0 && x != y && a.RequestRate > 0 {
				out = append(out, fmt.Sprintf("burstiness differs (%g and %g at %s): arrivals that come in bursts wait for each other", x, y, g.name))
			}
			if x, y := a.SharedShare, b.SharedShare; x != nil && y != nil && math.Abs(*x-*y) > 0.05 {
				out = append(out, fmt.Sprintf("shared prefixes differ (%s and %s of the prompt tokens at %s): a prefix cache makes TTFT shorter", metric.Percent(*x), metric.Percent(*y), g.name))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func meanLength(levels []*outcome.Level, tokens func(*metric.Summary) int) (float64, bool) {
	n, completed := 0, 0
	for _, l := range levels {
		n, completed = n+tokens(&l.Summary), completed+l.Summary.Completed
	}
	return float64(n) / float64(max(completed, 1)), n > 0 && completed > 0
}
