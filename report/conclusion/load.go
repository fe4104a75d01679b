package conclusion

import (
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
	if len(names) > mostLoads {
		return plural(len(names), "load")
	}
	return clip(strings.Join(names, "; "), mostName)
}

// settingOf names the load of a level.
func settingOf(l *outcome.Level) string {
	var words []string
	if l.Rate > 0 {
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
