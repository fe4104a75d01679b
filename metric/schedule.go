package metric

import (
	"math"
	"time"

	"tacho"
	"tacho/stat"
)

// A moment is one mark of a request, tacho.Never where it did not come.
type moment func(*marks) time.Duration

func due(m *marks) time.Duration  { return m.due }
func slot(m *marks) time.Duration { return m.slot }
func sent(m *marks) time.Duration { return m.sent }
func end(m *marks) time.Duration  { return m.end }

// peaks are nil where no request succeeded. The first two are counted exactly
// as vLLM does: seconds are cut from the first start of a successful request, a
// token event is one token, and a request is in every second it touches. Both
// mislead (several tokens in an event, requests one after another in a second),
// so the others say how many tokens came in any second, and how many requests
// were in flight at one moment.
func (a *Accumulator) peaks() *Peaks {
	origin, ok := origin(a.marks)
	if a.thinned.every > 0 {
		origin = a.thinned.origin
	}
	if !ok {
		return nil
	}
	p := a.arrivals.peaks(origin)
	second := func(at time.Duration) time.Duration { return (at - origin) / time.Second }
	p.TouchingASecond = a.peakOverlap(&a.thinned.seconds,
		func(m *marks) time.Duration {
			if !m.streamed() {
				return tacho.Never
			}
			return second(m.sent)
		},
		func(m *marks) time.Duration { return second(m.last) + 1 })
	p.InFlight = a.peakOverlap(&a.thinned.flying, sent, end)
	return &p
}

// origin is when the first successful request was sent.
func origin(all []marks) (at time.Duration, ok bool) {
	at = time.Duration(math.MaxInt64)
	for i := range all {
		if m := &all[i]; m.streamed() {
			at = min(at, m.sent)
		}
	}
	return at, at < math.MaxInt64
}

// peakOverlap is that of all records: counted, or by the marks if all are kept.
func (a *Accumulator) peakOverlap(counted *overlap, from, to moment) int {
	if a.thinned.every > 0 {
		return counted.peak()
	}
	return peakOverlap(a.marks, from, to)
}

// peakOverlap is the greatest number of records under way at one moment. A
// record is under way from its first moment up to, not including, its second;
// one without both is not counted.
func peakOverlap(all []marks, from, to moment) int {
	begins, ends := make([]time.Duration, 0, len(all)), make([]time.Duration, 0, len(all))
	for i := range all {
		a, b := from(&all[i]), to(&all[i])
		if a != tacho.Never && b > a {
			begins, ends = append(begins, a), append(ends, b)
		}
	}
	stat.SortTimes(begins)
	stat.SortTimes(ends)
	over, peak := 0, 0
	for i, at := range begins {
		for ends[over] <= at {
			over++
		}
		peak = max(peak, i+1-over)
	}
	return peak
}

// rate compares the schedule with what came of it, over the requests that were
// sent: n requests make n-1 intervals. It is nil with fewer than two.
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

// add takes in one moment of a request, if that was sent.
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
	stat.SortBy(sends, func(s send) uint64 { return stat.TimeKey(s.sent) })
	stat.SortBy(sends, func(s send) uint64 { return stat.TimeKey(s.origin) })
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
