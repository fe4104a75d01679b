package compare

import (
	"fmt"
	"strconv"

	"tacho/metric"
	"tacho/outcome"
)

// Failing says which conditions hold in levels of a run, in words. A condition
// that cannot be asked is an error: a gate that sees nothing must not be open.
func Failing(run *outcome.Run, conditions []metric.Condition) ([]string, error) {
	var out []string
	for _, c := range conditions {
		if c.Relative {
			return nil, fmt.Errorf("%s is a difference from another run: tacho compare A B --fail-if %q", c.Text, c.Text)
		}
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
// "~" does not count unless unsure ones do; one that has no test does.
func (c *Comparison) Failing(conditions []metric.Condition, unsure bool) ([]string, error) {
	var out []string
	for _, cond := range conditions {
		asked := false
		for i := range c.Levels {
			row := c.Levels[i].row(cond.Name)
			if row == nil {
				continue
			}
			for side := 1; side < len(c.Sides); side++ {
				text, ok := holding(row, side, &cond, unsure)
				asked = asked || ok
				if text != "" {
					out = append(out, fmt.Sprintf("%s%s: %s of %s is %s", where(c.Levels[i].Name, len(c.Levels)), cond.Text, cond.Name, c.Sides[side].Name, text))
				}
			}
		}
		if !asked {
			return nil, fmt.Errorf("%s: no level has %s on both sides: nothing can be said of it", cond.Text, cond.Name)
		}
	}
	return out, nil
}

// holding is what is to be said where a condition holds of a side; false where it
// cannot be asked.
func holding(row *Row, side int, c *metric.Condition, unsure bool) (string, bool) {
	value, delta := row.Values[side], row.Deltas[side]
	switch {
	case value == nil:
		return "", false
	case !c.Relative:
		if c.Holds(*value) {
			return amount(*value, row.Unit), true
		}
		return "", true
	case delta == nil:
		return "", false
	case delta.Share == nil: // from 0 everything is infinitely more
		if delta.Difference != 0 && c.Above == (delta.Difference > 0) && (unsure || delta.Verdict != Same) {
			return amount(*value, row.Unit) + " and was 0", true
		}
		return "", true
	}
	if !c.Holds(*delta.Share) || delta.Verdict == Same && !unsure {
		return "", true
	}
	text := fmt.Sprintf("%s (%+.1f %%", amount(*value, row.Unit), 100**delta.Share)
	if delta.Adjusted != nil {
		text += fmt.Sprintf(", p=%.2g", *delta.Adjusted)
	}
	return text + ")", true
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
