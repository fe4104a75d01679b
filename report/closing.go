package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tacho/metric"
	"tacho/outcome"
	"tacho/report/conclusion"
)

// Closing is what a run came to, in sentences, and how exact its clock was.
func Closing(run *outcome.Run) []string {
	out := conclusion.Of(run).Text
	if clock := clockLine(run); clock != "" {
		out = append(out, clock)
	}
	return out
}

// clockLine says how exact the times of a ladder of loads are, up to its knee, and what
// user-space timestamps would have made of them; empty if that is not known.
func clockLine(run *outcome.Run) string {
	places, _, _ := outcome.Ladder(run.Levels)
	if len(places) == 0 || slices.ContainsFunc(run.Notes, outcome.IsLimit) {
		return ""
	}
	good, _ := outcome.Knee(run.Levels)
	exact, plain := 0.0, 0.0
	name := ""
	for i, place := range places {
		s := &run.Levels[place].Summary
		if s.Clock.Name != "kernel" && s.Clock.Name != "wire" {
			return ""
		}
		name, exact = s.Clock.Name, max(exact, s.ITLSlackMillis, s.TTFTSlackMillis)
		if stats := s.Dist(metric.ReadLag).Stats; stats != nil {
			plain = max(plain, stats.Percentile(99))
		}
		if good == nil && i == 0 || good != nil && place == *good {
			break
		}
	}
	if plain <= exact {
		return ""
	}
	text := "Clock: " + name
	if exact > 0 {
		text += ", within " + microsWords(exact)
	}
	return text + "; a client that asks for the time itself would be off by " + microsWords(plain) + " here (p99)."
}

func microsWords(ms float64) string {
	if ms < 1 {
		return conclusion.Brief(1000*ms) + " us"
	}
	return conclusion.Millis(ms)
}

// mostDoubts is how many reasons a screen has room for.
const mostDoubts = 3

// reasonsAgainst are why levels are not to be trusted, each once: the worst first, and
// equally bad ones in the order of the rules, which have a cut run before its noise.
func reasonsAgainst(levels []outcome.Level) []string {
	type doubt struct {
		reason metric.Reason
		at     []string
	}
	var all []doubt
	for i := range levels {
		for _, r := range levels[i].Summary.Verdict.Reasons {
			if r.Severity != metric.Degraded && r.Severity != metric.Invalid {
				continue
			}
			k := slices.IndexFunc(all, func(d doubt) bool { return d.reason.Code == r.Code && d.reason.Severity == r.Severity })
			if k < 0 {
				k, all = len(all), append(all, doubt{reason: r})
			}
			all[k].at = append(all[k].at, levels[i].Value)
		}
	}
	slices.SortStableFunc(all, func(a, b doubt) int {
		return cmp.Or(rank(a.reason.Severity)-rank(b.reason.Severity), ruleOf(a.reason)-ruleOf(b.reason))
	})
	var out []string
	for i, d := range all {
		if i == mostDoubts {
			out = append(out, fmt.Sprintf("The whole report has %d more.", len(all)-i))
			break
		}
		at := ""
		if text := strings.Join(nonEmpty(d.at...), ", "); text != "" {
			at = " at " + text
		}
		out = append(out, fmt.Sprintf("%s%s: %s.", d.reason.Severity, at, d.reason.Text))
	}
	return out
}

// ruleOf is where the rule of a reason stands among all. What a caller knows, such as
// that an agent was lost, has no rule, and comes before them.
func ruleOf(r metric.Reason) int {
	return slices.IndexFunc(metric.Rules, func(rule metric.Rule) bool { return rule.Code == r.Code })
}

func rank(s metric.Severity) int {
	if s == metric.Invalid {
		return 0
	}
	return 1
}
