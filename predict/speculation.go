package predict

import (
	"tacho"
	"tacho/sim/step"
)

// drafted is how many tokens the events of a level had, but for the first and the
// last of each answer: a step makes one, or several where they were drafted.
type drafted struct {
	mean
	largest int
}

func (d *drafted) add(r *tacho.Record) {
	for i := 1; i < len(r.Events)-1; i++ {
		n := int(r.Events[i].Tokens)
		d.mean.add(float64(n))
		d.largest = max(d.largest, n)
	}
}

const (
	fewestDrafts = 1.1 // tokens of an event, on average, that tell of drafts
	fewestEvents = 100 // that tell it
)

// speculationOf is the drafting that explains events of several tokens. Where few
// answers are written at once nothing else makes them.
func speculationOf(levels []*Seen) (s step.Speculation) {
	var calm *Seen
	for _, l := range levels {
		if l.drafted.n >= fewestEvents && (calm == nil || l.most < calm.most) {
			calm = l
		}
	}
	if calm == nil || calm.drafted.value() < fewestDrafts {
		return s
	}
	s.DraftTokens = calm.drafted.largest - 1
	low, high := 0.0, 1.0
	for range 40 { // the more are accepted, the more an event has
		s.Acceptance = (low + high) / 2
		if tokensOfStep(&s) < calm.drafted.value() {
			low = s.Acceptance
		} else {
			high = s.Acceptance
		}
	}
	return s
}

// tokensOfStep is how many tokens a decode makes on average.
func tokensOfStep(s *step.Speculation) float64 {
	sum, kept := 1.0, 1.0
	for range s.DraftTokens {
		kept *= s.Acceptance
		sum += kept
	}
	return sum
}
