// Package compare tests whether outcomes differ. Sides are runs of two or more things. Levels are
// matched by their coordinates, and each quantity of a level is compared with the first side, with a
// confidence interval and a suitable test.
//
// If a side has several runs of a level, the run is the unit of the test. Two single runs are cut into
// stretches, because requests near each other in time are not independent, and stretches at the same
// position of both runs are compared.
package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/stat"
)

// A Side is one run, or several runs of the same thing.
type Side struct {
	Name string        `json:"name"`
	Runs []outcome.Run `json:"-"`
}

// Options select the quantities and the significance level.
type Options struct {
	Quantities []metric.Quantity
	Alpha      float64 // accepted share of false positives
	InOrder    bool    // match levels by their position, not by their load
}

// DefaultAlpha is the default share of false positives.
const DefaultAlpha = 0.05

// intervalLevel is the confidence level of intervals.
const intervalLevel = 0.95

// Quantities are the quantities compared by default.
var Quantities = []string{
	"ttft.mean", "ttft.p99", "tpot.mean", "tpot.p99", "itl.mean", "itl.p99", "e2el.mean", "e2el.p99",
	"request_throughput", "output_throughput", "failures", "pauses", "longest_pause",
}

// A Comparison is the difference of sides, level by level.
type Comparison struct {
	Sides    []Side   `json:"sides"`
	Alpha    float64  `json:"alpha"`
	Warnings []string `json:"warnings,omitempty"` // why the sides may differ for other reasons
	Levels   []Level  `json:"levels"`
	Alone    []Alone  `json:"unmatched,omitempty"` // levels without a match
	Wide     int      `json:"-"`                   // of the terminal, for sentences; 0 is unknown
	Verbose  bool     `json:"-"`                   // print all rows of several levels
}

// A Level holds the results of all sides at the same coordinates.
type Level struct {
	Name string `json:"name"`
	Runs []int  `json:"runs"` // number of runs of each side
	Rows []Row  `json:"rows"`
	of   [][]*outcome.Level
}

// Of returns the levels of a side. Several levels are repeats.
func (l *Level) Of(side int) []*outcome.Level { return l.of[side] }

// AnyInvalid reports whether a compared level is INVALID.
func (c *Comparison) AnyInvalid() bool {
	for i := range c.Levels {
		for _, l := range slices.Concat(c.Levels[i].of...) {
			if l.Summary.Verdict.Severity == metric.Invalid {
				return true
			}
		}
	}
	return false
}

// An Alone is a level without a match.
type Alone struct {
	Side int    `json:"side"`
	Name string `json:"name"`
}

// A Row is one quantity of a level: the value of each side, nil if it has none, and the difference of
// each side from the first.
type Row struct {
	Quantity metric.Quantity `json:"-"`
	Name     string          `json:"name"`
	Unit     metric.Unit     `json:"unit"`
	Values   []*float64      `json:"values"`
	Deltas   []*Delta        `json:"deltas"` // the first is nil
}

// A Delta is the difference of a side from the first. Shares are relative to the first side's value.
type Delta struct {
	Difference float64  `json:"difference"`         // in the unit of the row
	Share      *float64 `json:"share"`              // nil if the first value is 0
	Low        *float64 `json:"low,omitempty"`      // 95 % confidence interval of the difference
	High       *float64 `json:"high,omitempty"`     // of the difference
	P          *float64 `json:"p,omitempty"`        // nil if there is no test
	Adjusted   *float64 `json:"adjusted,omitempty"` // adjusted for all rows together
	NoTest     string   `json:"no_test,omitempty"`  // why there is no test
	Verdict    Verdict  `json:"verdict"`

	shift *shift // shift of all values of the metric; nil if not tested
}

// A Verdict is the conclusion on a difference.
type Verdict string

// The verdicts.
const (
	Same   Verdict = "~" // no significant difference
	Better Verdict = "better"
	Worse  Verdict = "worse"
	More   Verdict = "more" // if neither direction is better
	Less   Verdict = "less"
	Untold Verdict = "no test"
	Void   Verdict = "INVALID" // the verdict on one of the levels rules out the quantity
)

// ErrNoLevel says that the sides have no level in common. The comparison lists their levels.
var ErrNoLevel = errors.New("no level in common")

// Compare compares all sides with the first.
func Compare(sides []Side, o Options) (*Comparison, error) {
	if len(sides) < 2 {
		return nil, errors.New("a comparison needs at least two runs")
	}
	if o.Alpha <= 0 || o.Alpha >= 1 {
		o.Alpha = DefaultAlpha
	}
	sides = called(sides)
	c := &Comparison{Sides: sides, Alpha: o.Alpha}
	groups := match(sides)
	if o.InOrder {
		groups = matchInOrder(sides)
	}
	for _, g := range groups {
		if g.sides() < 2 || len(g.levels[0]) == 0 {
			for side, levels := range g.levels {
				if len(levels) > 0 {
					c.Alone = append(c.Alone, Alone{side, g.name})
				}
			}
			continue
		}
		level, err := c.level(&g, o)
		if err != nil {
			return nil, err
		}
		c.Levels = append(c.Levels, *level)
	}
	if len(c.Levels) == 0 {
		return c, fmt.Errorf("%w: %s", ErrNoLevel, nothingInCommon(sides, c.Alone))
	}
	c.Warnings = append(unequalLoads(groups), warnings(sides, groups)...)
	c.adjust(func(r *Row) bool { return r.Name == metric.FailureShare }) // the many figures of latency must not hide failures
	c.adjust(func(r *Row) bool { return r.Name != metric.FailureShare })
	return c, nil
}

// called marks the names of predicted and simulated sides.
func called(sides []Side) []Side {
	out := slices.Clone(sides)
	for i := range out {
		if slices.ContainsFunc(out[i].Runs, func(r outcome.Run) bool { return r.Predicted() }) {
			out[i].Name += " (" + string(metric.Predicted) + ")"
		} else if slices.ContainsFunc(out[i].Runs, func(r outcome.Run) bool { return r.Simulated() }) {
			out[i].Name += " (" + outcome.SimulatedWord + ")"
		}
	}
	return out
}

// level compares the sides at one level.
func (c *Comparison) level(g *group, o Options) (*Level, error) {
	out := &Level{Name: g.name, of: g.levels}
	for _, levels := range g.levels {
		out.Runs = append(out.Runs, len(levels))
	}
	singles, err := newSingles(g.levels, o.Quantities)
	if err != nil {
		return nil, err
	}
	for _, q := range o.Quantities {
		row, known, err := newRow(g.levels, singles, q)
		if err != nil {
			return nil, err
		}
		if known {
			out.Rows = append(out.Rows, row)
		}
	}
	return out, nil
}

// newSingles cuts sides with a single run into stretches, if both sides have a single run.
func newSingles(levels [][]*outcome.Level, quantities []metric.Quantity) ([]*single, error) {
	out := make([]*single, len(levels))
	for i := range levels {
		if len(levels[0]) != 1 || len(levels[i]) != 1 {
			continue
		}
		var err error
		if out[i], err = newSingle(levels[i][0], quantities); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// newRow compares the sides in one quantity. It returns false if no side has the quantity, or a pause.
func newRow(levels [][]*outcome.Level, singles []*single, q metric.Quantity) (row Row, known bool, err error) {
	row = Row{Quantity: q, Name: q.Name, Unit: q.Unit, Values: make([]*float64, len(levels)), Deltas: make([]*Delta, len(levels))}
	var first *estimated
	for i := range levels {
		e, err := estimate(levels[i], q)
		if err != nil {
			return row, false, err
		}
		if e == nil {
			continue
		}
		known, row.Values[i] = true, &e.value
		switch {
		case i == 0:
			first = e
		case first == nil:
		case unusable(&q, slices.Concat(levels[0], levels[i])) != "":
			row.Deltas[i] = untested(first, e)
			row.Deltas[i].NoTest = invalid
		case singles[i] != nil:
			row.Deltas[i] = withinRuns(first, e, q, singles[0], singles[i])
		default:
			row.Deltas[i] = betweenRuns(first, e)
			if q.Name == metric.FailureShare && first.runs+e.runs > 2 {
				row.Deltas[i].testFailures(tallies(levels[0]), tallies(levels[i]))
			}
		}
	}
	paused := !q.OfLevel() || slices.ContainsFunc(row.Values, func(v *float64) bool { return v != nil && *v > 0 })
	return row, known && paused, nil
}

// adjust adjusts the p-values of some rows together, because more tests give more false positives.
func (c *Comparison) adjust(some func(*Row) bool) {
	var deltas []*Delta
	var better []int
	var ps []float64
	for i := range c.Levels {
		for _, row := range c.Levels[i].Rows {
			for _, d := range row.Deltas {
				if d == nil || !some(&row) {
					continue
				}
				switch d.Verdict = Untold; {
				case d.NoTest == invalid:
					d.Verdict = Void
				case d.P != nil:
					deltas, better, ps = append(deltas, d), append(better, row.Quantity.Better), append(ps, *d.P)
				}
			}
		}
	}
	for i, p := range stat.BenjaminiHochberg(ps) {
		d := deltas[i]
		d.Adjusted = &p
		d.Verdict = verdict(d.Difference, p, c.Alpha, better[i])
	}
}

func verdict(difference, p, alpha float64, better int) Verdict {
	more := difference > 0
	switch {
	case p > alpha || difference == 0:
		return Same
	case better == 0 && more:
		return More
	case better == 0:
		return Less
	case more == (better > 0):
		return Better
	}
	return Worse
}

// shareOf returns a difference relative to a value.
func shareOf(difference, from float64) *float64 {
	if from == 0 || math.IsNaN(from) {
		return nil
	}
	share := difference / math.Abs(from)
	return &share
}

// A Benchmark is one run of a level of a side, as a list of values.
type Benchmark struct {
	Name   string
	Values []UnitValue
}

// A UnitValue is a quantity under the name of a unit: ttft.p99-ms.
type UnitValue struct {
	Value float64
	Unit  string
}

// Benchmarks returns the runs of a side at all compared levels.
func (c *Comparison) Benchmarks(side int) []Benchmark {
	var out []Benchmark
	for i := range c.Levels {
		for _, l := range c.Levels[i].of[side] {
			b := Benchmark{Name: c.Levels[i].Name}
			for _, row := range c.Levels[i].Rows {
				if v, ok := row.Quantity.Of(&l.Summary); ok {
					b.Values = append(b.Values, UnitValue{v, row.Name + "-" + string(row.Unit)})
				}
			}
			out = append(out, b)
		}
	}
	return out
}
