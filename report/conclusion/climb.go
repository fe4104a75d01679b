package conclusion

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tacho/metric"
	"tacho/outcome"
)

// A climb is levels of rising load.
type climb struct {
	levels []outcome.Level
	places []int // in levels, by rising load
	option string
	load   []float64
	origin []int // of each of levels, its place in the run
	all    []outcome.Level
}

func (k *climb) at(i int) *metric.Summary { return &k.levels[k.places[i]].Summary }

// words are the load of a level.
func (k *climb) words(i int) string { return loadOf(k.option, Brief(k.load[i])) }

// loadAt is a level and what it served.
func (k *climb) loadAt(i int) *Load {
	return loadServed(k.origin[k.places[i]], k.words(i), k.at(i))
}

// loadServed is a level at its place in the run, and what it served.
func loadServed(place int, name string, s *metric.Summary) *Load {
	return &Load{Level: place, Name: name, Requests: s.Ended(), RequestsPerS: s.Throughput.RequestsPerS, OutputTokensPerS: s.Throughput.OutputTokensPerS}
}

// keptUp is how many levels keep up, from the lowest on.
func (k *climb) keptUp() int {
	good, _ := outcome.Knee(k.levels)
	if good == nil {
		return 0
	}
	return 1 + slices.Index(k.places, *good)
}

// goodShare is the part of the requests that keeps the conditions of goodput, by
// which a level holds them.
const goodShare = 0.99

// keptSLO is how many levels hold what every request is to keep, from the lowest on.
func (k *climb) keptSLO() int {
	for i := range k.places {
		s := k.at(i)
		if s.Throughput.GoodPerS == nil || *s.Throughput.GoodPerS*s.DurationS < goodShare*float64(s.Ended()) {
			return i
		}
	}
	return len(k.places)
}

// hasSLO says whether the run has limits for its requests.
func (k *climb) hasSLO() bool { return len(k.at(0).Config.Goodput) > 0 }

// kept is how many levels are well, from the lowest on.
func (k *climb) kept() int {
	if k.hasSLO() {
		return k.keptSLO()
	}
	return k.keptUp()
}

// verdict is the worst of the levels that hold, and of the levels beyond them without
// their findings: that a server falls behind above its limit is the conclusion, and no
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

// conclude says up to which load all is well, and what comes beyond it.
func (k *climb) conclude(c *Conclusion) {
	n := k.kept()
	c.Goal = k.goal(n)
	c.Untried = k.untried(n)
	if n < len(k.places) {
		c.Missed, c.Breaks = k.loadAt(n), k.breaks(n)
	}
	if n == 0 {
		text := "Falls behind already at "
		if k.hasSLO() {
			text = "Misses " + c.Goal + " already at "
		}
		c.Text = []string{text + k.words(0) + k.beyond(0, "; ") + "."}
		return
	}
	c.Held, c.Evidence = k.loadAt(n-1), evidence(k.at(n-1))
	served := Brief(c.Held.RequestsPerS) + " req/s"
	if k.option == "request-rate" {
		served = "served " + served
	}
	if c.Held.OutputTokensPerS > 0 {
		served += ", " + Brief(c.Held.OutputTokensPerS) + " tok/s"
	}
	text := fmt.Sprintf("Holds %s up to %s (%s)", c.Goal, c.Held.Name, served)
	switch {
	case c.Missed == nil && k.invalidAbove(n-1):
		text += ", the highest load with a usable result: it may take more."
	case c.Missed == nil:
		text += ", the highest load that was tried: it may take more."
	default:
		text += k.beyond(n, "; beyond that ") + "."
	}
	c.Text = []string{text}
}

// goal is what the first n levels hold.
func (k *climb) goal(n int) string {
	if slos := k.at(0).Config.Goodput; len(slos) > 0 {
		s := k.at(max(n-1, 0))
		if requests := s.Ended(); requests < leastForP99 {
			return sloWords(slos) + fmt.Sprintf(" for each of %d requests", requests)
		}
		return sloWords(slos) + " for 99 % of the requests"
	}
	if m, name, limit := k.bound(n); m != nil {
		return strings.ToUpper(m.Name) + name + " < " + Millis(limit)
	}
	return "its pace"
}

// bound is a round number that the tail of the first n levels stays below; nil
// if no latency is known.
func (k *climb) bound(n int) (m *metric.Metric, name string, limit float64) {
	var levels []*metric.Summary
	for i := range n {
		levels = append(levels, k.at(i))
	}
	for _, m := range []*metric.Metric{metric.TTFT, metric.E2EL} {
		if n == 0 || slices.ContainsFunc(levels, func(s *metric.Summary) bool { return s.Dist(m).Stats == nil }) {
			continue
		}
		name, _ := tailOf(m, levels[n-1:]) // of the level that the claim is about
		highest := 0.0
		for i := range levels {
			_, of := tailOf(m, levels[i:i+1])
			highest = max(highest, of(levels[i]))
		}
		if highest > 0 {
			return m, " " + name, roundUp(highest)
		}
	}
	return nil, "", 0
}

// Limit is the SLO that levels hold up to their knee, as tacho find takes it; empty
// if there is no knee.
func Limit(levels []outcome.Level) string {
	k := climb{levels: levels}
	k.places, k.option, k.load = outcome.Ladder(levels)
	if _, beyond := outcome.Knee(levels); beyond == nil {
		return ""
	}
	m, _, limit := k.bound(k.keptUp())
	if m == nil {
		return ""
	}
	return m.Name + ":p99<" + strings.ReplaceAll(Millis(limit), " ", "")
}

// roundUp is the next of 1, 1.5, 2, 3, 5, 7 times a power of ten.
func roundUp(v float64) float64 {
	tens := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 1.5, 2, 3, 5, 7} {
		if v < step*tens {
			return step * tens
		}
	}
	return 10 * tens
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

// waits say what the time is spent on beyond the knee, by the key of the part that
// limits.
var waits = map[string]string{
	"server_queue": "requests queue in the server", "front_end": "the server's front end is the limit", "client": "requests wait in the client",
	"network": "the network is the limit",
}

// beyond says what becomes of a level that is too much.
func (k *climb) beyond(i int, before string) string {
	s := k.at(i)
	var words []string
	if all := s.Ended(); s.Failed*100 > all {
		words = append(words, fmt.Sprintf("%.0f %% of the requests fail", 100*float64(s.Failed)/float64(all)))
	}
	if s.Where != nil && waits[s.Where.Bottleneck] != "" {
		words = append(words, waits[s.Where.Bottleneck])
	} else if sent := k.levels[k.places[i]].Offered(); sent > 0 && s.Throughput.RequestsPerS < 0.9*sent {
		words = append(words, fmt.Sprintf("the server falls behind, with %s of %s req/s served", Brief(s.Throughput.RequestsPerS), Brief(sent)))
	} else if sent == 0 && i > 0 && i == k.keptUp() {
		words = append(words, "more at once gains "+gained(k.at(i-1), s))
	}
	if b := k.breaks(i); b != nil && b.Metric != failureMetric {
		words = append(words, fmt.Sprintf("%s %s is %s at %s", strings.ToUpper(b.Metric), b.Statistic, inUnit(b.Value, b.Unit), k.words(i)))
	}
	if len(words) == 0 {
		return ""
	}
	return before + strings.Join(words, ", and ")
}

// gained says how little more a level serves than the one before.
func gained(before, s *metric.Summary) string {
	percent := 100 * (s.Throughput.RequestsPerS/before.Throughput.RequestsPerS - 1)
	if percent < 0.5 {
		return "nothing"
	}
	return fmt.Sprintf("%.0f %%", percent)
}

// Mark is the place in levels of the highest load that is well, and what it is
// called; -1 if there is none.
func Mark(levels []outcome.Level) (place int, name string) {
	c := OfLevels(levels)
	if c.Held == nil {
		return -1, ""
	}
	if len(levels[c.Held.Level].Summary.Config.Goodput) > 0 {
		return c.Held.Level, "SLO"
	}
	return c.Held.Level, "knee"
}
