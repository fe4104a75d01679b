package page

import (
	"errors"
	"slices"

	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// levelChanges are the changes of a level from its match in the first run, as in tacho
// compare.
type levelChanges struct {
	Levels []int    `json:"levels"` // indices in the first run
	Rows   []change `json:"rows"`
}

// A change is the change of one quantity.
type change struct {
	Name    string          `json:"name"`
	Times   float64         `json:"times"` // ratio to the first run
	Verdict compare.Verdict `json:"verdict"`
}

// shownChanges are the quantities that the page shows in a sentence.
var shownChanges = []string{"request_throughput", "ttft.mean", "tpot.mean", "itl.mean", "e2el.mean"}

// compareWithFirst compares runs with the first run. It uses the default quantities of
// compare, because adjusted p-values depend on their number.
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
		first := indicesOf(&runs[0], l.Of(0))
		for side := 1; side < len(runs); side++ {
			for _, at := range indicesOf(&runs[side], l.Of(side)) {
				if shown := p.Runs[side].Levels; at < len(shown) {
					shown[at].Against = &levelChanges{first, changes(l, side)}
				}
			}
		}
	}
	return nil
}

// indicesOf returns the indices of levels in their run.
func indicesOf(run *outcome.Run, levels []*outcome.Level) (out []int) {
	for i := range run.Levels {
		if slices.Contains(levels, &run.Levels[i]) {
			out = append(out, i)
		}
	}
	return out
}

// changes returns the changes of a side that the page shows.
func changes(l *compare.Level, side int) []change {
	out := []change{}
	for _, name := range shownChanges {
		for _, row := range l.Rows {
			if d := row.Deltas[side]; row.Name == name && d != nil && d.Verdict != compare.Void && *row.Values[0] > 0 && *row.Values[side] > 0 {
				out = append(out, change{name, *row.Values[side] / *row.Values[0], d.Verdict})
			}
		}
	}
	return out
}
