package outcome

import (
	"fmt"

	"github.com/tacho-bench/tacho/metric"
)

// Repeats is the spread of the levels of a run that differ only in their repeat number.
type Repeats struct {
	Coordinates Coordinates `json:"coordinates,omitempty"`
	metric.Repeats
}

// Repeats returns the repeats of a run in the order of its levels, or nil if every level ran once.
func (r *Run) Repeats() []Repeats {
	var keys []string
	alike := map[string][]*Level{}
	for i := range r.Levels {
		l := &r.Levels[i]
		if l.Repeat == 0 {
			continue
		}
		key := fmt.Sprint(l.Coordinates)
		if alike[key] == nil {
			keys = append(keys, key)
		}
		alike[key] = append(alike[key], l)
	}
	var out []Repeats
	for _, key := range keys {
		var runs []*metric.Summary
		for _, l := range alike[key] {
			runs = append(runs, &l.Summary)
		}
		if spread := metric.Repeated(runs); spread != nil {
			out = append(out, Repeats{alike[key][0].Coordinates, *spread})
		}
	}
	return out
}
