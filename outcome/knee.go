package outcome

import (
	"cmp"
	"regexp"
	"slices"

	"tacho/metric"
)

// flags are the options in the name of a level: "--num-prompts 4 --seed 1".
var flags = regexp.MustCompile(`--([\w-]+) (\S+)`)

// Flags are what sets a level apart, by its name: levels that others measured have
// nothing else.
func (l *Level) Flags() (out Coordinates) {
	for _, found := range flags.FindAllStringSubmatch(l.Name, -1) {
		out = append(out, Coordinate{Name: found[1], Value: found[2]})
	}
	return out
}

// loads are the options of which a larger value is more load.
var loads = []string{"request-rate", "max-concurrency", "num-prompts"}

// Ladder are the places of levels by rising load, with the load of each; nil where
// they differ in more than one number, or there is no throughput.
func Ladder(levels []Level) (places []int, option string, load []float64) {
	value := make([]float64, len(levels))
	for i := range levels {
		l := &levels[i]
		found := l.Flags()
		if len(found) != 1 || i > 0 && found[0].Name != option || l.Repeat > 1 || l.Summary.Throughput == nil {
			return nil, "", nil
		}
		v, number := found[0].Number()
		if !number || slices.Contains(value[:i], v) {
			return nil, "", nil
		}
		option, value[i], places = found[0].Name, v, append(places, i)
	}
	if !slices.Contains(loads, option) || len(levels) < 2 {
		return nil, "", nil
	}
	slices.SortFunc(places, func(a, b int) int { return cmp.Compare(value[a], value[b]) })
	for _, i := range places {
		load = append(load, value[i])
	}
	return places, option, load
}

// Knee is the last level that keeps up, and the one after it; nil where nobody
// can say. An open loop keeps up while it serves 90 % of what is sent, the time that
// the last request takes not counted, and its queue does not grow all along; a
// closed loop, or a burst, while the next level gains 5 % or more.
func Knee(levels []Level) (good, next *int) {
	var last *int
	places, _, _ := Ladder(levels)
	for _, i := range places {
		served := levels[i].Summary.Throughput.RequestsPerS
		behind := false
		if sent := levels[i].Offered(); sent > 0 {
			behind = levels[i].servedWithin(slowest(&levels[places[0]])) < 0.9*sent || levels[i].grows()
		} else if last != nil {
			behind = served < 1.05*levels[*last].Summary.Throughput.RequestsPerS
		}
		if behind {
			if last == nil {
				return nil, nil
			}
			return last, &i
		}
		last = &i
	}
	return last, nil
}

// slowest is how long a request takes in seconds at most where nothing holds it up,
// as far as a level tells; 0 where it does not. A long answer to the last request
// of a short level is no queue.
func slowest(l *Level) float64 {
	if stats := l.Summary.Dist(metric.E2EL).Stats; stats != nil && stats.Percentile(99) > 0 {
		return stats.Percentile(99) / 1e3
	}
	return 0
}

// servedWithin is the throughput, in requests/s, without the last seconds in which
// none were sent any more and some had to be in flight still.
func (l *Level) servedWithin(last float64) float64 {
	s := &l.Summary
	return s.Throughput.RequestsPerS * s.DurationS / max(s.DurationS-last, s.DurationS/2, 1e-9)
}

// grows says whether more and more requests waited in the course of a level.
func (l *Level) grows() bool {
	return slices.ContainsFunc(l.Summary.Verdict.Reasons, func(r metric.Reason) bool { return r.Code == metric.QueueGrowth })
}

// Offered is the rate at which requests were sent in an open loop; 0 is no rate. What
// a short level sent beyond what was asked for is chance: it is counted from its first
// request to its last, and its throughput from before to after these.
func (l *Level) Offered() float64 {
	r := l.Summary.Rate
	if l.Summary.Config.RequestRate <= 0 || r == nil || r.AchievedPerS == nil {
		return 0
	}
	return min(*r.AchievedPerS, l.Summary.Config.RequestRate)
}
