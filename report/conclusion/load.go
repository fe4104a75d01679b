package conclusion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// LoadOf names the load of a run in a few words: "1 to 6 req/s", "concurrency 8", "burst
// of 200".
func LoadOf(levels []outcome.Level) string {
	if places, option, load := outcome.Ladder(levels); len(places) > 1 && len(places) == len(levels) {
		return loadOf(option, metric.Setting(load[0])+" to "+metric.Setting(load[len(load)-1]))
	}
	var names []string
	for i := range levels {
		if name := settingOf(&levels[i]); len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	const mostLoads = 3
	if rates := ratesOf(levels); rates != nil && len(names) > mostLoads {
		rates = slices.DeleteFunc(rates, func(r float64) bool { return r == 0 })
		return loadOf("request-rate", metric.Setting(slices.Min(rates))+" to "+metric.Setting(slices.Max(rates)))
	}
	if len(names) > mostLoads {
		return plural(len(names), "load")
	}
	return clip(strings.Join(names, "; "), mostName)
}

// ByLoad returns the places of the levels by rising load, or in their order if they have no common load.
func ByLoad(levels []outcome.Level) []int {
	places, _, _ := outcome.Ladder(levels)
	if places != nil {
		return places
	}
	for i := range levels {
		places = append(places, i)
	}
	if rates := ratesOf(levels); rates != nil {
		slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(rates[a], rates[b]) })
	}
	return places
}

// ratesOf returns the request rates of the probes of a search: of all levels but the first, a closed loop, which
// gets 0. It returns nil for other levels.
func ratesOf(levels []outcome.Level) (rates []float64) {
	for i := range levels {
		if l := &levels[i]; (l.Rate > 0) == (i == 0) || i == 0 && l.Concurrency == 0 {
			return nil
		}
		rates = append(rates, levels[i].Rate)
	}
	if len(rates) < 2 {
		return nil
	}
	return rates
}

// settingOf names the load of a level.
func settingOf(l *outcome.Level) string {
	var words []string
	switch {
	case l.Ramp != nil:
		words = append(words, loadOf("request-rate", fmt.Sprintf("%d to %d", l.Ramp.StartRPS, l.Ramp.EndRPS)))
	case l.Rate > 0:
		words = append(words, loadOf("request-rate", metric.Setting(l.Rate)))
	}
	if l.Concurrency > 0 {
		words = append(words, loadOf("max-concurrency", metric.Integer(l.Concurrency)))
	}
	switch {
	case len(words) > 0:
		return strings.Join(words, ", ")
	case l.Prompts > 0 && l.Name == "":
		return loadOf("num-prompts", metric.Integer(l.Prompts))
	}
	return NameOf(l)
}
