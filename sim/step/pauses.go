package step

import "time"

// Pauses are times in which the engine stands still, as for a garbage collection. The first begins after EveryS.
type Pauses struct {
	EveryS  float64 `yaml:"every_s"`  // from the start of a pause to the start of the next; 0: none
	LengthS float64 `yaml:"length_s"` // at most half of EveryS
}

// extend returns the duration of a step that begins at a time and takes a while without pauses.
func (p *Pauses) extend(from, took time.Duration) time.Duration {
	every, length := milliseconds(1000*p.EveryS), milliseconds(1000*p.LengthS)
	if every <= 0 || length <= 0 {
		return took
	}
	at := from
	if in := from % every; from >= every && in < length { // a pause is under way
		at += length - in
	}
	for next := at - at%every + every; ; next += every {
		if at+took < next {
			return at + took - from
		}
		took -= next - at
		at = next + length
	}
}
