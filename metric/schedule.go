package metric

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tacho-bench/tacho"
)

// A moment returns one timestamp of a request, or tacho.Never.
type moment func(*marks) time.Duration

func due(m *marks) time.Duration  { return m.due }
func slot(m *marks) time.Duration { return m.slot }
func sent(m *marks) time.Duration { return m.sent }
func end(m *marks) time.Duration  { return m.end }

// peaks returns nil if no request succeeded. The first two peaks follow vLLM exactly: seconds are
// counted from the first start of a successful request, a token event counts as one token, and a
// request counts in every second it is active. Both mislead if events contain several tokens or
// requests follow each other within a second. So the other two peaks give the tokens in any period of
// one second and the requests in flight at the same time.
func (a *Accumulator) peaks() *Peaks {
	origin, ok := origin(a.marks)
	if a.sampling.every > 0 {
		origin = a.sampling.origin
	}
	if !ok {
		return nil
	}
	p := a.arrivals.peaks(origin)
	second := func(at time.Duration) time.Duration { return (at - origin) / time.Second }
	p.TouchingASecond = a.peakOverlap(&a.sampling.seconds,
		func(m *marks) time.Duration {
			if !m.streamed() {
				return tacho.Never
			}
			return second(m.sent)
		},
		func(m *marks) time.Duration { return second(m.last) + 1 })
	p.InFlight = a.peakOverlap(&a.sampling.flying, sent, end)
	return &p
}

// origin returns the send time of the first successful request.
func origin(all []marks) (at time.Duration, ok bool) {
	at = time.Duration(math.MaxInt64)
	for i := range all {
		if m := &all[i]; m.streamed() {
			at = min(at, m.sent)
		}
	}
	return at, at < math.MaxInt64
}

// peakOverlap returns the peak over all records: counted, or from the marks if all are kept.
func (a *Accumulator) peakOverlap(counted *overlap, from, to moment) int {
	if a.sampling.every > 0 {
		now, peak := 0, 0
		for _, n := range counted.more {
			now += int(n)
			peak = max(peak, now)
		}
		return peak
	}
	return peakOverlap(a.marks, from, to)
}

// peakOverlap returns the largest number of records active at the same time. A record is active in
// [from, to). A record without both timestamps does not count.
func peakOverlap(all []marks, from, to moment) int {
	begins, ends := make([]time.Duration, 0, len(all)), make([]time.Duration, 0, len(all))
	for i := range all {
		a, b := from(&all[i]), to(&all[i])
		if a != tacho.Never && b > a {
			begins, ends = append(begins, a), append(ends, b)
		}
	}
	slices.Sort(begins)
	slices.Sort(ends)
	ended, peak := 0, 0
	for i, at := range begins {
		for ends[ended] <= at {
			ended++
		}
		peak = max(peak, i+1-ended)
	}
	return peak
}

// rate compares the scheduled and achieved rate of the requests sent. n requests have n-1 intervals. It
// returns nil with fewer than two requests.
func rate(dues, sents span) *Rate {
	if dues.n < 2 {
		return nil
	}
	return &Rate{ScheduledPerS: dues.perS(), AchievedPerS: sents.perS(), SpanS: dues.length().Seconds()}
}

type span struct {
	n           int
	first, last time.Duration
}

// add adds a timestamp of a request, if the request was sent.
func (s *span) add(m *marks, at moment) {
	if m.sent != tacho.Never {
		s.merge(&span{1, at(m), at(m)})
	}
}

func (s *span) merge(o *span) {
	if s.n == 0 {
		s.first, s.last = o.first, o.last
	}
	if o.n > 0 {
		s.n, s.first, s.last = s.n+o.n, min(s.first, o.first), max(s.last, o.last)
	}
}

func (s span) length() time.Duration { return s.last - s.first }

// perS returns nil if all timestamps are equal.
func (s span) perS() *float64 {
	if s.length() <= 0 {
		return nil
	}
	perS := float64(s.n-1) / s.length().Seconds()
	return &perS
}

// driftMin is the number of requests needed to compute tenths.
const driftMin = 20

// drift returns nil if too few requests were sent.
func drift(all []marks, origin moment) *Drift {
	type send struct{ origin, sent time.Duration }
	sends := make([]send, 0, len(all))
	for i := range all {
		if m := &all[i]; m.sent != tacho.Never && origin(m) != tacho.Never {
			sends = append(sends, send{origin(m), m.sent})
		}
	}
	if len(sends) < driftMin {
		return nil
	}
	slices.SortStableFunc(sends, func(a, b send) int { return cmp.Or(cmp.Compare(a.origin, b.origin), cmp.Compare(a.sent, b.sent)) })
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
