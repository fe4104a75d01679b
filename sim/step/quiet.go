package step

import (
	"math"
	"time"
)

// A quiet is a time in which no answer of a server can end, so that nobody need
// look at it unless a request comes: what happens in it is worked out in one go. It
// is for servers whose clients may be told late.
type quiet struct {
	on    bool
	until time.Duration
	step  time.Duration // a step takes no less
	tell  func(*Emission)
}

// beQuiet lets the server tell late where its steps follow one another on one GPU.
func (s *Server) beQuiet(tell func(*Emission)) {
	one := len(s.hosts) == 1 && s.hosts[0].stages == 1 && s.p.Split == Split{}
	s.quiet = quiet{on: one && !s.engines[0].flow.on, step: s.p.leastStep(), tell: tell}
}

// leastStep is a time that no step is shorter than.
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

// next is when somebody must look at the server again in which something happens at
// that time.
func (q *quiet) next(at time.Duration, s *Server) time.Duration {
	if q.until <= at {
		q.until = s.noEndBefore(at)
	}
	return max(at, q.until)
}

// noEndBefore is a time before which no answer ends if nobody comes. The next
// thing happens at that time.
func (s *Server) noEndBefore(at time.Duration) time.Duration {
	if s.api.ending > 0 {
		return at
	}
	fewest := s.fewestTokens()
	if fewest == 0 {
		return at
	}
	// The first result from now on is not before one step after this time, and the
	// others follow by a step each.
	h := &s.hosts[0]
	from := at
	switch {
	case len(h.flying) > 0:
		from = h.flying[0].done - s.quiet.step
	case h.phase == launching:
		from = h.began
	}
	each := 1 + s.p.Speculation.DraftTokens
	return from + time.Duration((fewest+each-1)/each)*s.quiet.step
}

// fewestTokens is how many tokens the engine has still to make of the answer that
// lacks the fewest; 0: there is none.
func (s *Server) fewestTokens() (fewest int) {
	for _, e := range s.engines {
		for _, q := range e.live {
			if n := q.emits - q.said; fewest == 0 || n < fewest {
				fewest = n
			}
		}
	}
	return fewest
}
