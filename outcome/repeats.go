package outcome

import (
	"fmt"

	"tacho/metric"
)

// Repeats are the levels of a run that are alike in all but which repeat they
// are: how far they differ.
type Repeats struct {
	Coordinates Coordinates `json:"coordinates,omitempty"`
	metric.Repeats
}

// Repeats are those of a run, in the order of its levels; none where every level
// ran once.
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
