package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
)

// Closing returns the conclusion of a run in sentences, and the accuracy of its clock.
func Closing(run *outcome.Run) []string {
	out := conclusion.Of(run).Text
	if clock := clockLine(run); clock != "" {
		out = append(out, clock)
	}
	return out
}

// clockLine states how accurate the timestamps are up to the knee, and how far off
// user-space timestamps would be. The line is empty if the accuracy is unknown.
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
	return text + "; user-space timestamps would be off by " + microsWords(plain) + " (p99)."
}

func microsWords(ms float64) string {
	if ms < 1 {
		return metric.Brief(1000*ms) + " us"
	}
	return metric.Duration(ms)
}

// A doubt is a reason not to trust some levels, and their names.
type doubt struct {
	reason metric.Reason
	at     []string
}

// Doubts returns the reasons not to trust levels, each reason once. The worst
// come first. Equal severities are in the order of the rules, in which an interrupted
// run comes before noise. word precedes the numbers of probes of a
// search; levels have the names of the conclusion.
func Doubts(word string, levels []outcome.Level) []string {
	all := doubtsOf(word, levels)
	slices.SortStableFunc(all, func(a, b doubt) int {
		return cmp.Or(rank(a.reason.Severity)-rank(b.reason.Severity), ruleOf(a.reason)-ruleOf(b.reason))
	})
	var out []string
	for i, d := range all {
		if i == 3 {
			out = append(out, fmt.Sprintf("%d more in the full report.", len(all)-i))
			break
		}
		at := ""
		if text := strings.Join(nonEmpty(d.at...), ", "); text != "" {
			at = " at " + strings.TrimSpace(word+" "+text)
		}
		out = append(out, fmt.Sprintf("%s%s: %s.", d.reason.Severity, at, d.reason.Text))
	}
	return out
}

// doubtsOf returns each reason once, with all of its levels.
func doubtsOf(word string, levels []outcome.Level) []doubt {
	var all []doubt
	for i := range levels {
		for _, r := range levels[i].Summary.Verdict.Reasons {
			expected := word != "" && r.Code == metric.QueueGrowth // a search overloads the server, and names the overloaded probes
			if expected || r.Severity != metric.Degraded && r.Severity != metric.Invalid {
				continue
			}
			k := slices.IndexFunc(all, func(d doubt) bool { return d.reason.Code == r.Code && d.reason.Severity == r.Severity })
			if k < 0 {
				k, all = len(all), append(all, doubt{reason: r})
			}
			name := levels[i].Value
			if word == "" && len(levels[i].Flags()) > 0 {
				name = conclusion.NameOf(&levels[i])
			}
			all[k].at = append(all[k].at, name)
		}
	}
	return all
}

// ruleOf returns the position of a reason's rule among all rules. Reasons from outside
// the rules, such as a lost agent, get -1 and come first.
func ruleOf(r metric.Reason) int {
	return slices.IndexFunc(metric.Rules, func(rule metric.Rule) bool { return rule.Code == r.Code })
}

func rank(s metric.Severity) int {
	switch s {
	case metric.Invalid:
		return 0
	case metric.Degraded:
		return 1
	}
	return 2
}
