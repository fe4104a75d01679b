package compare

import (
	"fmt"
	"math"
	"strconv"

	"tacho/metric"
	"tacho/outcome"
)

// CheckAlone complains about conditions that cannot be asked of a run alone.
func CheckAlone(conditions []metric.Condition) error {
	for _, c := range conditions {
		if c.Relative {
			return fmt.Errorf("%s is a difference from another run: use tacho compare A B --fail-if %q", c.Text, c.Text)
		}
	}
	return nil
}

// Failing says which conditions hold in levels of a run, in words. A condition
// that cannot be asked is an error: a gate that sees nothing must not be open.
func Failing(run *outcome.Run, conditions []metric.Condition) ([]string, error) {
	if err := CheckAlone(conditions); err != nil {
		return nil, err
	}
	var out []string
	for _, c := range conditions {
		asked := false
		for i := range run.Levels {
			l := &run.Levels[i]
			v, ok, err := Value(l, c.Quantity)
			if err != nil {
				return nil, err
			}
			asked = asked || ok
			if ok && c.Holds(v) {
				out = append(out, fmt.Sprintf("%s%s: %s is %s", where(placeName(l), len(run.Levels)), c.Text, c.Name, amount(v, c.Unit)))
			}
		}
		if !asked {
			return nil, fmt.Errorf("%s: the run has no %s: nothing can be said of it", c.Text, c.Name)
		}
	}
	return out, nil
}

// Failing says which conditions hold, in words. A difference that the test calls
// "~", or that it could not weigh for want of requests, does not count unless
// unsure ones do: it is among the doubtful. One of results that have figures only
// does count.
func (c *Comparison) Failing(conditions []metric.Condition, unsure bool) (failing, doubtful []string, err error) {
	for _, cond := range conditions {
		asked := false
		for side := 1; side < len(c.Sides); side++ {
			for i := range c.Levels {
				text, sure, ok := holding(c.Levels[i].row(cond.Name), side, &cond)
				asked = asked || ok
				if text == "" {
					continue
				}
				text = fmt.Sprintf("%s%s: %s of %s is %s", where(c.Levels[i].Name, len(c.Levels)), cond.Text, cond.Name, c.Sides[side].Name, text)
				if sure || unsure {
					failing = append(failing, text)
				} else {
					doubtful = append(doubtful, text)
				}
			}
		}
		if !asked {
			return nil, nil, fmt.Errorf("%s: no level has %s on both sides: nothing can be said of it", cond.Text, cond.Name)
		}
	}
	return failing, doubtful, nil
}

// holding is what is to be said where a condition holds of a side, and whether
// that is sure. Not asked: one of the sides does not tell.
func holding(row *Row, side int, c *metric.Condition) (text string, sure, asked bool) {
	if row == nil {
		return "", false, false
	}
	value, delta := row.Values[side], row.Deltas[side]
	if value == nil || c.Relative && delta == nil {
		return "", false, false
	}
	if !c.Relative {
		if c.Holds(*value) {
			return amount(*value, row.Unit), true, true
		}
		return "", false, true
	}
	change := math.Copysign(math.Inf(1), delta.Difference) // from nothing, all is infinitely more
	if delta.Share != nil {
		change = *delta.Share
	}
	if delta.Difference == 0 || !c.Holds(change) {
		return "", false, true
	}
	text = fmt.Sprintf("%s, %+.1f %%", amount(*value, row.Unit), 100*change)
	switch {
	case delta.Adjusted != nil:
		text += fmt.Sprintf(" (p=%.2g)", *delta.Adjusted)
	default:
		text += " (no test: " + delta.NoTest + ")"
	}
	return text, delta.Verdict != Same && (delta.NoTest == "" || delta.NoTest == noRequests), true
}

func (l *Level) row(name string) *Row {
	for i := range l.Rows {
		if l.Rows[i].Name == name {
			return &l.Rows[i]
		}
	}
	return nil
}

// where names a level, unless there is but one.
func where(name string, levels int) string {
	if levels < 2 {
		return ""
	}
	return name + ": "
}

func amount(v float64, u metric.Unit) string {
	return strconv.FormatFloat(v, 'f', 2, 64) + " " + string(u)
}
