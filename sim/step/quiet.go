package step

import (
	"math"
	"time"
)

// A quiet period is a time in which no answer of the server can end, so the caller
// need not advance the server unless a request arrives. All events of the period
// are then computed together. It requires deferred delivery.
type quietPeriod struct {
	on      bool
	until   time.Duration
	step    time.Duration // lower bound of a step's duration
	deliver func(*Emission)
}

// enableQuiet allows quiet periods if the server's steps run on one GPU, one after
// the other.
func (s *Server) enableQuiet(tell func(*Emission)) {
	one := len(s.hosts) == 1 && s.hosts[0].stages == 1 && s.p.Split == Split{}
	s.quiet = quietPeriod{on: one && !s.engines[0].group.on, step: s.p.leastStep(), deliver: tell}
}

// leastStep is a lower bound of a step's duration.
func (p *Profile) leastStep() time.Duration {
	least := math.Inf(1)
	for _, line := range [][]Knot{p.Cost.Step, p.Cost.Prefill, p.Cost.Decode} {
		for i, k := range line {
			if i > 0 && k.Ms < line[i-1].Ms {
				return 0
			}
			least = min(least, k.Ms)
		}
	}
	if p.Cost.Noise > 0 {
		return 0
	}
	return max(0, milliseconds(least/float64(max(p.Parallel.Tensor, 1)))-time.Microsecond) // sums are rounded
}

// next returns when the caller must advance the server, whose next event is at the
// given time.
func (q *quietPeriod) next(at time.Duration, s *Server) time.Duration {
	if q.until <= at {
		q.until = s.noEndBefore(at)
	}
	return max(at, q.until)
}

// noEndBefore returns a time before which no answer ends if no request arrives. The
// next event is at the given time.
func (s *Server) noEndBefore(at time.Duration) time.Duration {
	if s.api.ending > 0 {
		return at
	}
	fewest := s.fewestTokens()
	if fewest == 0 {
		return at
	}
	// The first result from now on comes at least one step after this time, and
	// each further result one step later.
	h := &s.hosts[0]
	from := at
	switch {
	case len(h.launches) > 0:
		from = h.launches[0].done - s.quiet.step
	case h.phase == launching:
		from = h.began
	}
	each := 1 + s.p.Speculation.DraftTokens
	return from + time.Duration((fewest+each-1)/each)*s.quiet.step
}

// fewestTokens is the smallest number of tokens that an answer still needs, or 0 if
// there is no answer.
func (s *Server) fewestTokens() (fewest int) {
	for _, e := range s.engines {
		for _, q := range e.live {
			if n := q.emits - q.emitted; fewest == 0 || n < fewest {
				fewest = n
			}
		}
	}
	return fewest
}
