package metric

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"tacho"
	"tacho/stat"
)

// arrivals are the token events of streamed successes, for the busiest second:
// each with its time, up to as many as a digest keeps; beyond, counted by the
// millisecond.
type arrivals struct {
	exact  []arrival
	millis map[int64]arrivalBin
}

type arrival struct {
	at     time.Duration
	tokens float64
}

type arrivalBin struct {
	events int
	tokens int64 // in units of tokenUnit, so that the sum does not depend on order
}

const tokenUnit = 1 << 20

func (a *arrivals) add(r *tacho.Record, limit int) {
	if !r.OK() || r.Sent == tacho.Never {
		return
	}
	for i := range r.Events {
		one := arrival{r.Events[i].At, tokensIn(r, i)}
		if a.millis == nil {
			a.exact = append(a.exact, one)
		} else {
			a.count(one)
		}
	}
	if len(a.exact) > cmp.Or(limit, stat.ExactLimit) {
		a.spill()
	}
}

func (a *arrivals) count(one arrival) {
	k := int64(one.at / time.Millisecond)
	b := a.millis[k]
	b.events++
	b.tokens += int64(one.tokens * tokenUnit)
	a.millis[k] = b
}

func (a *arrivals) spill() {
	a.millis = map[int64]arrivalBin{}
	for _, one := range a.exact {
		a.count(one)
	}
	a.exact = nil
}

func (a *arrivals) merge(o *arrivals, limit int) {
	if a.millis == nil && (o.millis != nil || len(a.exact)+len(o.exact) > cmp.Or(limit, stat.ExactLimit)) {
		a.spill()
	}
	if a.millis == nil {
		a.exact = append(a.exact, o.exact...)
		return
	}
	for _, one := range o.exact {
		a.count(one)
	}
	for k, from := range o.millis {
		b := a.millis[k]
		b.events, b.tokens = b.events+from.events, b.tokens+from.tokens
		a.millis[k] = b
	}
}

// sorted are the arrivals in order, with how many events each stands for.
func (a *arrivals) sorted() (all []arrival, events []int) {
	if a.millis == nil {
		slices.SortFunc(a.exact, func(x, y arrival) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.tokens, y.tokens)) })
		return a.exact, nil
	}
	for _, k := range slices.Sorted(maps.Keys(a.millis)) {
		all = append(all, arrival{time.Duration(k) * time.Millisecond, float64(a.millis[k].tokens) / tokenUnit})
		events = append(events, a.millis[k].events)
	}
	return all, events
}

// peaks are the most events in a second cut from origin, and the most tokens in
// a second that may begin anywhere, or in the whole time since origin, if that
// is shorter, by the second.
func (a *arrivals) peaks(origin time.Duration) (p Peaks) {
	all, events := a.sorted()
	if len(all) == 0 {
		return p
	}
	window := min(all[len(all)-1].at-origin, time.Second)
	second, inSecond, first, now, peak := time.Duration(-1), 0, 0, 0.0, 0.0
	for i, one := range all {
		if s := (one.at - origin) / time.Second; s != second {
			second, inSecond = s, 0
		}
		if events == nil {
			inSecond++
		} else {
			inSecond += events[i]
		}
		p.EventsPerS = max(p.EventsPerS, inSecond)
		for now += one.tokens; all[first].at <= one.at-window && first < i; first++ {
			now -= all[first].tokens
		}
		peak = max(peak, now)
	}
	if window > 0 {
		p.TokensPerS = peak / window.Seconds()
	}
	return p
}
