package metric

import (
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
)

func TestStallsOfDelayedAcknowledgements(t *testing.T) {
	for name, c := range map[string]struct {
		first, second float64 // milliseconds after the headers
		stalls, short int
	}{
		"held back behind the head":        {40.2, 40.3, 1, 0},
		"and a little longer":              {45, 45, 1, 0},
		"first token of a server's own":    {43, 58, 0, 0},
		"two tokens together, but earlier": {38, 38, 0, 1},
		"much earlier":                     {20, 20, 0, 0},
		"later":                            {47, 47, 0, 0},
	} {
		r := &tacho.Record{Timeline: tacho.NewTimeline(0)}
		r.Head = 0
		for _, ms := range []float64{c.first, c.second} {
			r.Events = append(r.Events, tacho.Event{At: time.Duration(ms * float64(time.Millisecond))})
		}
		var one, both NetworkUse
		one.add(r)
		both.merge(&one)
		both.merge(&one)
		if one.Stalls != c.stalls || one.Short != c.short || both.Stalls != 2*c.stalls || both.Short != 2*c.short {
			t.Errorf("%s: %+v and twice %+v, want %d and %d", name, one, both, c.stalls, c.short)
		}
	}
}
