package conclusion

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// A climb is a sequence of levels with rising load.
type climb struct {
	levels []outcome.Level
	places []int // indices in levels, by rising load
	option string
	load   []float64
	origin []int // for each of levels, its index in the run
	all    []outcome.Level
}

// climbOf returns the levels of a rising load, or nil if there are fewer than two. origin has the index in the run of
// each level. Without an SLO only levels with a throughput count.
func climbOf(levels []outcome.Level, origin []int) *climb {
	k := &climb{}
	for i := range levels {
		if l := &levels[i]; supports(l) {
			k.levels, k.origin = append(k.levels, levels[i]), append(k.origin, origin[i])
		}
	}
	if k.places, k.option, k.load = outcome.Ladder(k.levels); len(k.places) == 0 {
		return nil
	}
	return k
}

// supports reports whether a level supports a conclusion: it can be judged by its SLO, or it has a throughput.
func supports(l *outcome.Level) bool {
	s := &l.Summary
	switch {
	case s.Config.SLO != "":
		return s.Standing() != metric.NotJudged
	case s.Config.HasSLO():
		return true
	}
	return l.HasRate()
}

func (k *climb) at(i int) *metric.Summary { return &k.levels[k.places[i]].Summary }

// words returns the load of level i as it reads in a sentence.
func (k *climb) words(i int) string { return inSentence(k.name(i)) }

// name returns the name of the load of level i.
func (k *climb) name(i int) string { return loadOf(k.option, metric.Setting(k.load[i])) }

// loadAt returns level i and its throughput.
func (k *climb) loadAt(i int) *Load {
	return loadServed(k.origin[k.places[i]], k.name(i), k.at(i))
}

// loadServed returns the level at index place of the run, with its throughput.
func loadServed(place int, name string, s *metric.Summary) *Load {
	return &Load{Level: place, Name: name, Requests: s.Ended(), RequestsPerS: s.Throughput.RequestsPerS, OutputTokensPerS: s.Throughput.OutputTokensPerS}
}

// keptUp returns the number of levels, from the lowest, at which the server keeps up.
func (k *climb) keptUp() int {
	good, _ := outcome.Knee(k.levels)
	if good == nil {
		return 0
	}
	return 1 + slices.Index(k.places, *good)
}

// goodShare is the share of requests within the SLO from which a level holds the SLO.
const goodShare = 0.99

// keptSLO returns the number of levels, from the lowest, within the SLO.
func (k *climb) keptSLO() int {
	for i := range k.places {
		s := k.at(i)
		if s.Config.SLO != "" {
			if s.Standing() == metric.Missed {
				return i
			}
			continue
		}
		if s.Throughput.GoodPerS == nil || *s.Throughput.GoodPerS*s.DurationS < goodShare*float64(s.Ended()) {
			return i
		}
	}
	return len(k.places)
}

// hasSLO reports whether the run sets an SLO.
func (k *climb) hasSLO() bool { return k.at(0).Config.HasSLO() }

// kept returns the number of levels, from the lowest, within the SLO. Without an SLO it
// counts the levels at which the server keeps up.
func (k *climb) kept() int {
	if k.hasSLO() {
		return k.keptSLO()
	}
	return k.keptUp()
}

// verdict returns the worst verdict of the levels. Levels above the limit count without
// their findings, because a server that falls behind there is the conclusion and not a
// doubt about it.
func (k *climb) verdict() metric.Severity {
	levels := make([]outcome.Level, len(k.places))
	for i, held := 0, k.kept(); i < len(levels); i++ {
		levels[i] = k.levels[k.places[i]]
		if i >= held {
			levels[i].Summary.Verdict.Severity = trust(&levels[i].Summary.Verdict)
		}
	}
	return worst(levels)
}

// conclude fills in the highest load within the goal, and the metric that breaks above
// it.
func (k *climb) conclude(c *Conclusion) {
	n := k.kept()
	c.Goal = k.slo(n)
	c.Untried = k.untried(n)
	if n < len(k.places) {
		c.Missed, c.Breaks = k.loadAt(n), k.breaks(n)
	}
	if n == 0 {
		text := "Falls behind even at "
		if k.hasSLO() {
			text = "Misses " + c.Goal + " even at "
		}
		c.Text = []string{text + k.words(0) + k.beyond(0, "; ") + "."}
		return
	}
	c.Held, c.Evidence = k.loadAt(n-1), evidence(k.at(n-1))
	text := map[bool]string{true: "Keeps up with ", false: "Gains throughput up to "}[k.option == "request-rate"]
	if k.hasSLO() {
		text = "Holds " + c.Goal + " up to "
	}
	text += inSentence(c.Held.Name)
	if facts := k.facts(n - 1); facts != "" {
		text += " (" + facts + ")"
	}
	switch {
	case c.Missed == nil && k.unusableAbove(n-1):
		text += ", the highest load with a usable result; the limit may be higher."
	case c.Missed == nil:
		text += ", the highest load tried; the limit may be higher."
	default:
		text += k.beyond(n, "; above that ") + "."
	}
	c.Text = []string{text}
}

// facts returns the throughput at level i and, without an SLO, the latency. The load of an open loop is its rate.
func (k *climb) facts(i int) string {
	s := k.at(i)
	rate := k.levels[k.places[i]].HasRate()
	var out []string
	if rate && k.option != "request-rate" {
		out = append(out, metric.Brief(s.Throughput.RequestsPerS)+" req/s")
	}
	if rate && s.Throughput.OutputTokensPerS > 0 {
		out = append(out, metric.Brief(s.Throughput.OutputTokensPerS)+" tok/s")
	}
	if b := latencyBreak(s); b != nil && !k.hasSLO() {
		out = append(out, fmt.Sprintf("%s %s %s", strings.ToUpper(b.Metric), b.Statistic, inUnit(b.Value, b.Unit)))
	}
	return strings.Join(out, ", ")
}

// slo describes the SLO of the run for the first n levels, or is empty if there is none.
func (k *climb) slo(n int) string {
	slos := k.at(0).Config.Goodput
	if k.at(0).Config.SLO != "" {
		return goalWords(k.at(max(n-1, 0)))
	}
	if len(slos) == 0 {
		return ""
	}
	if requests := k.at(max(n-1, 0)).Ended(); requests < leastForP99 {
		return sloWords(slos) + fmt.Sprintf(" for each of %d requests", requests)
	}
	return sloWords(slos) + " for 99 % of the requests"
}

// bound returns a round number above the tail latency of the first n levels. The metric
// is nil if no latency is known.
func (k *climb) bound(n int) (m *metric.Metric, limit float64) {
	for _, m := range []*metric.Metric{metric.TTFT, metric.E2EL} {
		highest := 0.0
		for i := range n {
			b := tailBreak(m, k.at(i))
			if b == nil {
				highest = 0
				break
			}
			highest = max(highest, b.Value)
		}
		if highest > 0 {
			return m, roundUp(highest)
		}
	}
	return nil, 0
}

// Limit returns the SLO that levels hold up to their knee, in the syntax of tacho find.
// Limit is empty if there is no knee.
func Limit(levels []outcome.Level) string {
	k := climb{levels: levels}
	k.places, k.option, k.load = outcome.Ladder(levels)
	if _, beyond := outcome.Knee(levels); beyond == nil {
		return ""
	}
	m, limit := k.bound(k.keptUp())
	if m == nil {
		return ""
	}
	return m.Name + ":p99<" + strings.ReplaceAll(metric.Duration(limit), " ", "")
}

// roundUp returns the next of 1, 1.5, 2, 3, 5 and 7 times a power of ten above v.
func roundUp(v float64) float64 {
	tens := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 1.5, 2, 3, 5, 7} {
		if v < step*tens {
			return step * tens
		}
	}
	return 10 * tens
}

// goalWords names the SLO of a level, and a percentile for which the level has too few requests.
func goalWords(s *metric.Summary) string {
	var out []string
	for _, g := range s.Config.Goals() {
		text := g.Goal()
		if g.TooFew(s) != "" {
			text += fmt.Sprintf(" (of only %s)", plural(s.Ended(), "request"))
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func sloWords(slos []metric.SLO) string {
	var out []string
	for _, s := range slos {
		name := strings.ToUpper(s.Metric)
		if s.Percentile > 0 {
			name += fmt.Sprintf(" p%v", s.Percentile)
		}
		unit := metric.Millis
		if m := metric.Named(s.Metric); m != nil {
			unit = m.Unit
		}
		out = append(out, name+" < "+inUnit(s.LimitMillis, string(unit)))
	}
	return strings.Join(out, ", ")
}

// waits describes the bottleneck above the knee, by the key of the stage.
var waits = map[string]string{
	"server_queue": "requests queue in the server", "front_end": "the server's front end is the limit", "client": "requests wait in the client",
	"network": "the network is the limit",
}

// beyond describes the effects of too much load at level i.
func (k *climb) beyond(i int, before string) string {
	s := k.at(i)
	var words []string
	if all := s.Ended(); s.Failed*100 > all {
		words = append(words, metric.Percent(float64(s.Failed)/float64(all))+" of the requests fail")
	}
	if s.Where != nil && waits[s.Where.Bottleneck] != "" {
		words = append(words, waits[s.Where.Bottleneck])
	} else if sent := k.levels[k.places[i]].Offered(); sent > 0 && s.Throughput.RequestsPerS < 0.9*sent {
		words = append(words, fmt.Sprintf("the server serves only %s of %s req/s", metric.Brief(s.Throughput.RequestsPerS), metric.Brief(sent)))
	} else if sent == 0 && i > 0 && i == k.keptUp() {
		words = append(words, "more load adds "+gained(k.at(i-1), s)+" throughput")
	}
	if b := k.breaks(i); b != nil && b.Metric != failureMetric {
		words = append(words, fmt.Sprintf("%s %s is %s at %s", strings.ToUpper(b.Metric), b.Statistic, inUnit(b.Value, b.Unit), k.words(i)))
	}
	if len(words) == 0 {
		return ""
	}
	return before + strings.Join(words, ", and ")
}

// gained returns by how much the throughput of a level exceeds the level before.
func gained(before, s *metric.Summary) string {
	percent := 100 * (s.Throughput.RequestsPerS/before.Throughput.RequestsPerS - 1)
	if !(percent >= 0.5) {
		return "no"
	}
	return metric.Brief(math.Round(percent)) + " %"
}

// Mark returns the index in levels of the highest load within the goal, and the name of
// its mark. The index is -1 if every load misses the goal.
func Mark(levels []outcome.Level) (place int, name string) {
	c := OfLevels(levels)
	if c.Held == nil {
		return -1, ""
	}
	if levels[c.Held.Level].Summary.Config.HasSLO() {
		return c.Held.Level, "SLO"
	}
	return c.Held.Level, "knee"
}
