package metric

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tacho"
)

// peaks are nil where no request succeeded. The first two are counted exactly
// as vLLM does: seconds are cut from the first start of a successful request, a
// token event is one token, and a request is in every second it touches. Both
// mislead (several tokens in an event, requests one after another in a second),
// so the others say how many tokens came in any second, and how many requests
// were in flight at one moment.
func peaks(records []tacho.Record) *Peaks {
	origin := time.Duration(math.MaxInt64)
	for i := range records {
		if r := &records[i]; measured(r) {
			origin = min(origin, r.Sent)
		}
	}
	if origin == math.MaxInt64 {
		return nil
	}
	second := func(at time.Duration) time.Duration { return (at - origin) / time.Second }
	events := map[time.Duration]int{}
	var p Peaks
	for i := range records {
		if r := &records[i]; measured(r) {
			for _, e := range r.Events {
				s := second(e.At)
				events[s]++
				p.EventsPerS = max(p.EventsPerS, events[s])
			}
		}
	}
	p.TouchingASecond = peakOverlap(records,
		func(r *tacho.Record) time.Duration {
			if !measured(r) {
				return tacho.Never
			}
			return second(r.Sent)
		},
		func(r *tacho.Record) time.Duration { return second(r.Last()) + 1 })
	p.TokensPerS = peakTokens(records, origin)
	p.InFlight = peakOverlap(records, sent, end)
	return &p
}

// peakTokens is the most output tokens in a second that may begin anywhere, or
// in the whole time since origin, if that is shorter, by the second.
func peakTokens(records []tacho.Record, origin time.Duration) float64 {
	type arrival struct {
		at     time.Duration
		tokens float64
	}
	var all []arrival
	for i := range records {
		if r := &records[i]; measured(r) {
			for k := range r.Events {
				all = append(all, arrival{r.Events[k].At, tokensIn(r, k)})
			}
		}
	}
	slices.SortFunc(all, func(a, b arrival) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.tokens, b.tokens)) })
	window := min(all[len(all)-1].at-origin, time.Second)
	if window <= 0 {
		return 0
	}
	first, now, peak := 0, 0.0, 0.0
	for _, a := range all {
		for now += a.tokens; all[first].at <= a.at-window; first++ {
			now -= all[first].tokens
		}
		peak = max(peak, now)
	}
	return peak / window.Seconds()
}

// measured says whether r has the marks of a streamed success.
func measured(r *tacho.Record) bool { return r.OK() && r.Sent != tacho.Never && len(r.Events) > 0 }

// peakOverlap is the greatest number of records under way at one moment. A
// record is under way from its first moment up to, not including, its second;
// one without both is not counted.
func peakOverlap(records []tacho.Record, from, to moment) int {
	type edge struct {
		at    time.Duration
		delta int
	}
	edges := make([]edge, 0, 2*len(records))
	for i := range records {
		a, b := from(&records[i]), to(&records[i])
		if a != tacho.Never && b > a {
			edges = append(edges, edge{a, 1}, edge{b, -1})
		}
	}
	slices.SortFunc(edges, func(x, y edge) int { return cmp.Or(cmp.Compare(x.at, y.at), x.delta-y.delta) })
	now, peak := 0, 0
	for _, e := range edges {
		now += e.delta
		peak = max(peak, now)
	}
	return peak
}

// rate compares the schedule with what came of it, over the requests that were
// sent: n requests make n-1 intervals. It is nil with fewer than two.
func rate(records []tacho.Record) *Rate {
	dues, sents := spanOf(records, due), spanOf(records, sent)
	if dues.n < 2 {
		return nil
	}
	return &Rate{ScheduledPerS: dues.perS(), AchievedPerS: sents.perS(), SpanS: dues.length().Seconds()}
}

type span struct {
	n           int
	first, last time.Duration
}

// spanOf is the span of one moment of the requests that were sent.
func spanOf(records []tacho.Record, at moment) span {
	var s span
	for i := range records {
		r := &records[i]
		if r.Sent == tacho.Never {
			continue
		}
		if s.n == 0 {
			s.first, s.last = at(r), at(r)
		}
		s.n++
		s.first, s.last = min(s.first, at(r)), max(s.last, at(r))
	}
	return s
}

func (s span) length() time.Duration { return s.last - s.first }

// perS is nil where all was at once.
func (s span) perS() *float64 {
	if s.length() <= 0 {
		return nil
	}
	perS := float64(s.n-1) / s.length().Seconds()
	return &perS
}

// driftMin is how many requests it takes to speak of a tenth of them.
const driftMin = 20

// drift is nil where too few requests were sent.
func drift(records []tacho.Record, origin moment) *Drift {
	type send struct{ origin, sent time.Duration }
	var sends []send
	for i := range records {
		if r := &records[i]; r.Sent != tacho.Never && origin(r) != tacho.Never {
			sends = append(sends, send{origin(r), r.Sent})
		}
	}
	if len(sends) < driftMin {
		return nil
	}
	slices.SortFunc(sends, func(a, b send) int {
		return cmp.Or(cmp.Compare(a.origin, b.origin), cmp.Compare(a.sent, b.sent))
	})
	meanLag := func(part []send) float64 {
		var total time.Duration
		for _, s := range part {
			total += s.sent - s.origin
		}
		return millis(total) / float64(len(part))
	}
	tenth := len(sends) / 10
	return &Drift{meanLag(sends[:tenth]), meanLag(sends[len(sends)-tenth:])}
}
