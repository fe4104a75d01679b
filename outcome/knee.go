package outcome

import (
	"cmp"
	"math"
	"regexp"
	"slices"

	"github.com/tacho-bench/tacho/metric"
)

// flags matches the options in the name of a level: "--num-prompts 4 --seed 1".
var flags = regexp.MustCompile(`--([\w-]+) (\S+)`)

// Flags parses the coordinates from the name of a level. Levels measured by other tools have only a
// name.
func (l *Level) Flags() (out Coordinates) {
	for _, found := range flags.FindAllStringSubmatch(l.Name, -1) {
		out = append(out, Coordinate{Name: found[1], Value: found[2]})
	}
	return out
}

// loads are the options with more load at a larger value.
var loads = []string{"request-rate", "max-concurrency", "num-prompts"}

// Ladder returns the indices of levels by rising load, and the load of each. An infinite rate is a burst
// and has no place among the rates. Ladder returns nil if the levels differ in more than one number, or
// have no throughput.
func Ladder(levels []Level) (places []int, option string, load []float64) {
	value := make([]float64, len(levels))
	for i := range levels {
		l := &levels[i]
		found := l.Flags()
		if len(found) != 1 || i > 0 && found[0].Name != option || l.Repeat > 1 || l.Summary.Throughput == nil {
			return nil, "", nil
		}
		v, number := found[0].Number()
		if !number || math.IsNaN(v) || slices.Contains(value[:i], v) {
			return nil, "", nil
		}
		option, value[i] = found[0].Name, v
		if !math.IsInf(v, 0) {
			places = append(places, i)
		}
	}
	if !slices.Contains(loads, option) || len(places) < 2 {
		return nil, "", nil
	}
	slices.SortFunc(places, func(a, b int) int { return cmp.Compare(value[a], value[b]) })
	for _, i := range places {
		load = append(load, value[i])
	}
	return places, option, load
}

// Knee returns the last level that keeps up and the level after it, or nil if this is unknown. An open
// loop keeps up while it serves 90 % of the requests sent, without the time of the last request, and
// its queue does not grow throughout the level. A closed loop or a burst keeps up while the next level
// gains 5 % or more.
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

// Burst reports whether a level sent all its requests at once. Results of other tools say so by the name of the level.
func (l *Level) Burst() bool {
	s := &l.Summary
	if s.Verdict.Severity == metric.Unjudged {
		flags := l.Flags()
		return l.Rate == 0 && l.Concurrency == 0 && slices.ContainsFunc(flags, func(f Coordinate) bool { return f.Name == "num-prompts" })
	}
	return s.Config.MaxConcurrency == 0 && s.Config.RequestRate == 0 && s.AllAtOnce()
}

// HasRate reports whether a level has enough requests for a throughput. A level starts with as many requests as its
// concurrency, and ends with as many that nothing follows. A throughput of fewer than twice as many is the time of the
// slowest request. A burst is all start and end, so it has no throughput.
func (l *Level) HasRate() bool {
	atOnce := l.Summary.Config.MaxConcurrency
	if l.Burst() {
		atOnce = cmp.Or(l.Summary.Config.Planned, l.Summary.Requests)
	}
	return l.Summary.HasMedian() && l.Summary.Completed >= 2*atOnce
}

// KeepsUp reports whether the server serves 90 % of the requests sent at a rate, without the time of a usual last
// request, and its queue does not grow. It is false without a rate.
func (l *Level) KeepsUp() bool {
	last := 0.0
	if stats := l.Summary.Dist(metric.E2EL).Stats; stats != nil {
		last = stats.Median / 1e3
	}
	sent := l.Offered()
	return sent > 0 && l.servedWithin(last) >= 0.9*sent && !l.grows()
}

// slowest returns the longest time of a request without a queue, in seconds, or 0 if the level does not
// show it. A long answer to the last request of a short level is not a queue.
func slowest(l *Level) float64 {
	if stats := l.Summary.Dist(metric.E2EL).Stats; stats != nil && stats.Percentile(99) > 0 {
		return stats.Percentile(99) / 1e3
	}
	return 0
}

// servedWithin returns the throughput in requests/s without the last seconds, in which nothing was sent
// and some requests were still in flight.
func (l *Level) servedWithin(last float64) float64 {
	s := &l.Summary
	return s.Throughput.RequestsPerS * s.DurationS / max(s.DurationS-last, s.DurationS/2, 1e-9)
}

// grows reports whether the backlog grew during the level.
func (l *Level) grows() bool {
	return slices.ContainsFunc(l.Summary.Verdict.Reasons, func(r metric.Reason) bool { return r.Code == metric.QueueGrowth })
}

// Offered returns the send rate of an open loop, or 0 if there is no rate. A short level may send
// faster than configured by random variation: the rate is measured from the first request to the last,
// and throughput over a longer time.
func (l *Level) Offered() float64 {
	r := l.Summary.Rate
	if l.Summary.Config.RequestRate <= 0 || r == nil || r.AchievedPerS == nil {
		return 0
	}
	return min(*r.AchievedPerS, l.Summary.Config.RequestRate)
}
