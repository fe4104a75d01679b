package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"tacho/metric"
	"tacho/outcome"
	"tacho/report/page"
)

// Closing is what a run came to, in sentences. No cause is named that its numbers
// do not show.
func Closing(run *outcome.Run) []string {
	for _, n := range run.Notes {
		if outcome.IsLimit(n) {
			return []string{n.Text} // a search has its own words
		}
	}
	levels := run.Levels
	places, option, load := outcome.Ladder(levels)
	if len(places) == 0 {
		return page.Answer(levels)
	}
	k := climb{levels: levels, places: places, option: option, load: load}
	out := []string{k.holds()}
	if levels[0].Summary.Verdict.Severity == metric.Predicted {
		out[0] = metric.PredictedWord + out[0]
	}
	if clock := k.clock(); clock != "" {
		out = append(out, clock)
	}
	return out
}

// A climb is levels of rising load.
type climb struct {
	levels []outcome.Level
	places []int
	option string
	load   []float64
}

func (k *climb) at(i int) *metric.Summary { return &k.levels[k.places[i]].Summary }

// load in words.
func (k *climb) words(i int) string {
	unit := map[string]string{"request-rate": "req/s", "max-concurrency": "requests at a time", "num-prompts": "requests at once"}[k.option]
	return brief(k.load[i]) + " " + unit
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
		if s.Throughput.GoodPerS == nil || *s.Throughput.GoodPerS*s.DurationS < goodShare*float64(s.Completed+s.Failed) {
			return i
		}
	}
	return len(k.places)
}

// kept is how many levels are well, from the lowest on, and the name of the last of
// them.
func (k *climb) kept() (n int, name string) {
	if len(k.at(0).Config.Goodput) > 0 {
		return k.keptSLO(), "SLO"
	}
	return k.keptUp(), "knee"
}

// holds says up to which load all is well, and what comes beyond it.
func (k *climb) holds() string {
	n, _ := k.kept()
	what := "its pace"
	if slos := k.at(0).Config.Goodput; len(slos) > 0 {
		what = sloWords(slos)
		if n == 0 {
			return fmt.Sprintf("Misses %s already at %s%s.", what, k.words(0), k.beyond(0, "; "))
		}
	} else if m, limit := k.bound(n); m != nil {
		what = strings.ToUpper(m.Name) + " p99 < " + millisWords(limit)
	}
	if n == 0 {
		return fmt.Sprintf("Falls behind already at %s%s.", k.words(0), k.beyond(0, "; "))
	}
	t := k.at(n - 1).Throughput
	served := brief(t.RequestsPerS) + " req/s"
	if t.OutputTokensPerS > 0 {
		served += ", " + brief(t.OutputTokensPerS) + " tok/s"
	}
	text := fmt.Sprintf("Holds %s up to %s (%s)", what, k.words(n-1), served)
	if n == len(k.places) {
		return text + ", the highest load that was tried: it may take more."
	}
	return text + k.beyond(n, "; beyond that ") + "."
}

// bound is a round number that the tail of the first n levels stays below; nil
// where no latency is known.
func (k *climb) bound(n int) (*metric.Metric, float64) {
	for _, m := range []*metric.Metric{metric.TTFT, metric.E2EL} {
		worst := 0.0
		for i := range n {
			if p99 := tail(m)(&k.levels[k.places[i]]); p99 != nil {
				worst = max(worst, *p99)
			}
		}
		if worst > 0 {
			return m, roundUp(worst)
		}
	}
	return nil, 0
}

// Limit is the SLO that levels hold up to their knee, as tacho find takes it; empty
// where there is no knee.
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
	return m.Name + ":p99<" + strings.ReplaceAll(millisWords(limit), " ", "")
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
		limit := millisWords(s.LimitMillis)
		if m := metric.Named(s.Metric); m != nil && m.Unit != metric.Millis {
			limit = brief(s.LimitMillis)
		}
		out = append(out, name+" < "+limit)
	}
	return strings.Join(out, ", ") + " for 99 % of the requests"
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
	if all := s.Completed + s.Failed; s.Failed*100 > all {
		words = append(words, fmt.Sprintf("%.0f %% of the requests fail", 100*float64(s.Failed)/float64(all)))
	}
	if s.Where != nil && waits[s.Where.Bottleneck] != "" {
		words = append(words, waits[s.Where.Bottleneck])
	} else if sent := k.levels[k.places[i]].Offered(); sent > 0 && s.Throughput.RequestsPerS < 0.9*sent {
		words = append(words, fmt.Sprintf("the server falls behind, with %s of %s req/s served", brief(s.Throughput.RequestsPerS), brief(sent)))
	} else if sent == 0 && i > 0 && i == k.keptUp() {
		words = append(words, "more at once gains "+gained(k.at(i-1), s))
	}
	if p99 := tail(metric.TTFT)(&k.levels[k.places[i]]); p99 != nil {
		words = append(words, fmt.Sprintf("TTFT p99 is %s at %s", millisWords(*p99), k.words(i)))
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

// clock says how exact the times are, and what a plain reader would have made of
// them; empty where that is not known.
func (k *climb) clock() string {
	exact, plain := 0.0, 0.0
	name := ""
	for i := range max(k.keptUp(), 1) {
		s := k.at(i)
		if s.Clock.Name != "kernel" && s.Clock.Name != "wire" {
			return ""
		}
		name, exact = s.Clock.Name, max(exact, s.ITLSlackMillis, s.TTFTSlackMillis)
		if stats := s.Dist(metric.ReadLag).Stats; stats != nil {
			plain = max(plain, stats.Percentile(99))
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
		return brief(1000*ms) + " us"
	}
	return millisWords(ms)
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
