package metric

import (
	"slices"
	"time"

	"tacho"
)

// shared is what records have in common whose events are steps of one engine. The
// gap between two steps is the same for all that were in both, so it is counted, and
// goes into digests once: what these tell does not depend on the order.
type shared map[any]*[2]stretch

// A stretch is steps of an engine, one after the other. Its records belong to the
// same parts and, for series, to the same moment.
type stretch struct {
	first int             // step
	at    []time.Duration // when each was over
	more  []int32         // records that have the gap before it, beyond those that have the one before that; one longer than at
	parts []*part
	begin time.Duration // of the moment
}

// longestStretch bounds what a stretch keeps.
const longestStretch = 1 << 13

// alone is how many of the events of r are to be looked at one by one. The gaps
// between the others are shared.
func (a *Accumulator) alone(r *tacho.Record) int {
	if r.Steps.Of == nil || !r.OK() || r.Clock != tacho.VirtualClock || a.bounds.of[indexITL].low != nil {
		return len(r.Events)
	}
	return min(r.Steps.Event+1, len(r.Events))
}

// share takes in the gaps between the events from alone on. The parts are those of
// the record.
func (a *Accumulator) share(r *tacho.Record, alone int, parts []*part) {
	if alone >= len(r.Events) {
		return
	}
	if a.shared == nil {
		a.shared = shared{}
	}
	both := a.shared[r.Steps.Of]
	if both == nil {
		both = new([2]stretch)
		a.shared[r.Steps.Of] = both
	}
	begin := a.series[indexITL].Begin(r.Sent)
	s := &both[0]
	if s.begin != begin || !slices.Equal(s.parts, parts) {
		both[0], both[1] = both[1], both[0]
	}
	if s.begin != begin || !slices.Equal(s.parts, parts) {
		a.settleSteps(s)
		s.begin, s.parts = begin, append(s.parts[:0], parts...)
	}
	events := r.Events[r.Steps.Event:]
	from, to := r.Steps.First, r.Steps.First+len(events)
	if len(s.at) > 0 && (from < s.first || from > s.first+len(s.at) || to-s.first > longestStretch) {
		a.settleSteps(s)
	}
	if len(s.at) == 0 {
		s.first, s.more = from, append(s.more[:0], 0)
	}
	for i := s.first + len(s.at) - from; i < len(events); i++ {
		s.at, s.more = append(s.at, events[i].At), append(s.more, 0)
	}
	s.more[from+1-s.first]++
	s.more[to-s.first]--
}

// settleSteps puts the gaps of a stretch into the digests and series, and empties it.
func (a *Accumulator) settleSteps(s *stretch) {
	t, records := &a.tally, 0
	t.empty()
	for i := 1; i < len(s.at); i++ {
		if records += int(s.more[i]); records > 0 {
			t.add(millis(s.at[i]-s.at[i-1]), records)
			a.arrivals.addTimes(s.at[i], records, a.Limit)
		}
	}
	s.at = s.at[:0]
	if len(t.x) == 0 {
		return
	}
	for _, metric := range []int{indexITL, tokenGapAt} {
		if metric == indexITL || a.apart {
			a.whole.digests[metric].AddTimes(t.x, t.times)
			a.series[metric].AddTimes(s.begin, t.x, t.times)
		}
	}
	for _, p := range s.parts {
		p.digests[indexITL].AddTimes(t.x, t.times)
	}
}
