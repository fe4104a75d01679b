package predict

import (
	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/sim/step"
)

// drafted is the number of tokens per event, except for the first and the last
// event of each answer. A step generates one token, or several with speculative
// decoding.
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
	fewestDrafts = 1.1 // minimum mean tokens per event with drafts
	fewestEvents = 100 // minimum number of events
)

// speculationOf returns the speculative decoding that explains events of several
// tokens. It uses a level with few concurrent answers, because there only drafts
// cause such events.
func speculationOf(levels []*MeasuredLevel) (s step.Speculation) {
	var calm *MeasuredLevel
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
	for range 40 { // bisection: the mean tokens per event grow with the acceptance
		s.Acceptance = (low + high) / 2
		if tokensOfStep(&s) < calm.drafted.value() {
			low = s.Acceptance
		} else {
			high = s.Acceptance
		}
	}
	return s
}

// tokensOfStep is the mean number of tokens of a decode.
func tokensOfStep(s *step.Speculation) float64 {
	sum, kept := 1.0, 1.0
	for range s.DraftTokens {
		kept *= s.Acceptance
		sum += kept
	}
	return sum
}
