package page

import (
	"errors"
	"slices"

	"tacho/compare"
	"tacho/metric"
	"tacho/outcome"
)

// against is how a level differs from its match in the first run, as tacho compare
// has it.
type against struct {
	Levels []int    `json:"levels"` // places in the first run
	Rows   []change `json:"rows"`
}

// A change is how one quantity differs.
type change struct {
	Name    string          `json:"name"`
	Times   float64         `json:"times"` // the value of the first run
	Verdict compare.Verdict `json:"verdict"`
}

// toldChanges are the quantities that the page tells in a sentence.
var toldChanges = []string{"request_throughput", "ttft.mean", "tpot.mean", "itl.mean", "e2el.mean"}

// compareWithFirst compares runs with the first of them. It asks for the quantities that
// compare has by default, because verdicts depend on how many there are.
func (p *page) compareWithFirst(runs []outcome.Run) error {
	if len(runs) < 2 {
		return nil
	}
	var o compare.Options
	for _, name := range compare.Quantities {
		q, err := metric.ParseQuantity(name)
		if err != nil {
			return err
		}
		o.Quantities = append(o.Quantities, q)
	}
	var sides []compare.Side
	for i := range runs {
		sides = append(sides, compare.Side{Runs: runs[i : i+1]})
	}
	c, err := compare.Compare(sides, o)
	if errors.Is(err, compare.ErrNoLevel) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range c.Levels {
		l := &c.Levels[i]
		first := placesOf(&runs[0], l.Of(0))
		for side := 1; side < len(runs); side++ {
			for _, at := range placesOf(&runs[side], l.Of(side)) {
				if shown := p.Runs[side].Levels; at < len(shown) {
					shown[at].Against = &against{first, changes(l, side)}
				}
			}
		}
	}
	return nil
}

// placesOf are the places of levels in their run.
func placesOf(run *outcome.Run, levels []*outcome.Level) (out []int) {
	for i := range run.Levels {
		if slices.Contains(levels, &run.Levels[i]) {
			out = append(out, i)
		}
	}
	return out
}

// changes are those of a side that the page tells.
func changes(l *compare.Level, side int) []change {
	out := []change{}
	for _, name := range toldChanges {
		for _, row := range l.Rows {
			if d := row.Deltas[side]; row.Name == name && d != nil && *row.Values[0] > 0 && *row.Values[side] > 0 {
				out = append(out, change{name, *row.Values[side] / *row.Values[0], d.Verdict})
			}
		}
	}
	return out
}
