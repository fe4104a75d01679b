package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// A State is the result of a condition.
type State string

// The states. A gate passes only if every condition passed.
const (
	Passed    State = "PASSED"
	Failed    State = "FAILED"
	NotJudged State = "NOT JUDGED"
)

// A Finding is the result of a condition at one level of a run.
type Finding struct {
	State State
	Name  string // the condition, with the level if there are several
	Text  string // Name, and the value or the reason
}

// Line returns the finding as one line of text.
func (f *Finding) Line() string { return string(f.State) + " " + f.Text }

// CheckAlone returns an error for conditions that need a second run.
func CheckAlone(conditions []metric.Condition) error {
	for _, c := range conditions {
		if c.Relative {
			return fmt.Errorf("%s is a difference from another run: use tacho compare A B --fail-if %q", c.Text, c.Text)
		}
	}
	return nil
}

// Judge checks the levels of a run against conditions. A condition that cannot be judged is a finding
// too, because a gate without data must not pass.
func Judge(run *outcome.Run, conditions []metric.Condition) ([]Finding, error) {
	if err := CheckAlone(conditions); err != nil {
		return nil, err
	}
	var out []Finding
	for _, c := range conditions {
		if c.Name == metric.SLOGate {
			found, err := judgeSLO(run, &c)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
			continue
		}
		if len(run.Levels) == 0 {
			out = append(out, unjudged("", &c, "nothing was measured"))
		}
		for i := range run.Levels {
			l := &run.Levels[i]
			name := where(placeName(l), len(run.Levels))
			v, ok, err := levelValue(l, c.Quantity)
			if err != nil {
				return nil, err
			}
			if !ok {
				out = append(out, unjudged(name, &c, "the run has no "+c.Name))
				continue
			}
			out = append(out, absolute(name, "", &c, v, l))
		}
	}
	return out, nil
}

// judgeSLO checks each level against its SLO.
func judgeSLO(run *outcome.Run, c *metric.Condition) (out []Finding, err error) {
	for i := range run.Levels {
		l := &run.Levels[i]
		name := where(placeName(l), len(run.Levels))
		goals := l.Summary.Config.Goals()
		if len(goals) == 0 {
			out = append(out, unjudged(name, c, "the run has no SLO: use --slo with bench, as --slo 'ttft:p99<500ms'"))
		}
		for _, g := range goals {
			missed := g.Negated()
			v, known, err := levelValue(l, g.Quantity)
			if err != nil {
				return nil, err
			}
			if !known {
				out = append(out, unjudged(name, &g, "the run has no "+g.Name))
				continue
			}
			f := absolute(name, "", &missed, v, l)
			if f.State == Passed && g.Standing(&l.Summary) == metric.Missed { // more requests failed than the percentile leaves out
				f = Finding{Failed, name + g.Text, fmt.Sprintf("%s%s: %d of %d requests failed", name, g.Text, l.Summary.Failed, l.Summary.Ended())}
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// absolute judges a condition with a fixed limit. v is the value of the levels, and of names their run
// if there are several.
func absolute(name, of string, c *metric.Condition, v float64, levels ...*outcome.Level) Finding {
	if why := unusable(&c.Quantity, levels); why != "" {
		return unjudged(name, c, why)
	}
	text := fmt.Sprintf("%s%s: %s%s is %s", name, c.Text, c.Name, of, amount(v, c.Limit, c.Unit))
	few, beyond := needsMore(c, levels), c.Holds(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return unjudged(name, c, c.Name+of+" is not a finite number")
	case few != "" && (!beyond || !certain(c, levels)):
		return unjudged(name, c, few)
	case beyond:
		return Finding{Failed, name + c.Text, text}
	}
	return Finding{Passed, name + c.Text, text}
}

// unusable returns why the verdict on one of the levels rules out a quantity, or "".
func unusable(q *metric.Quantity, levels []*outcome.Level) string {
	for _, l := range levels {
		if why := q.Unusable(&l.Summary); why != "" {
			return why
		}
	}
	return ""
}

// needsMore returns why one of the levels has too few requests for a condition, or "".
func needsMore(c *metric.Condition, levels []*outcome.Level) string {
	for _, l := range levels {
		if why := c.TooFew(&l.Summary); why != "" {
			return why
		}
	}
	return ""
}

// certain reports whether all levels are beyond a limit although they have few requests.
func certain(c *metric.Condition, levels []*outcome.Level) bool {
	return !slices.ContainsFunc(levels, func(l *outcome.Level) bool { return !c.Certain(&l.Summary) })
}

func unjudged(name string, c *metric.Condition, why string) Finding {
	return Finding{NotJudged, name + c.Text, fmt.Sprintf("%s%s: %s", name, c.Text, why)}
}

// Judge checks every side but the first against conditions. A difference that is not significant
// passes. A difference without a test is not judged, unless unsure is set or the results have no
// single requests.
func (c *Comparison) Judge(conditions []metric.Condition, unsure bool) []Finding {
	var out []Finding
	for _, cond := range conditions {
		for side := 1; side < len(c.Sides); side++ {
			judged, before := false, len(out)
			for i := range c.Levels {
				l := &c.Levels[i]
				f, ok := l.judge(where(l.Name, len(c.Levels)), c.Sides, side, &cond, unsure)
				if ok {
					judged, out = true, append(out, f)
				}
			}
			if !judged {
				out = append(out, unjudged("", &cond, fmt.Sprintf("no level has %s in the first run and in %s", cond.Name, c.Sides[side].Name)))
			}
			if len(c.Sides) > 2 { // several sides have the same condition
				for i := range out[before:] {
					out[before+i].Name += " of " + c.Sides[side].Name
				}
			}
		}
	}
	return out
}

// judge checks one side of a level against a condition. It returns false if one of the sides has no
// value.
func (l *Level) judge(name string, sides []Side, side int, c *metric.Condition, unsure bool) (Finding, bool) {
	row := l.row(c.Name)
	if row == nil {
		return Finding{}, false
	}
	value, delta := row.Values[side], row.Deltas[side]
	if value == nil || c.Relative && delta == nil {
		return Finding{}, false
	}
	of := sides[side].Name
	if !c.Relative {
		return absolute(name, " of "+of, c, *value, l.of[side]...), true
	}
	if why := l.unsupported(row, sides, side, c); why != "" {
		return unjudged(name, c, why), true
	}
	change := math.Copysign(math.Inf(1), delta.Difference) // any increase from 0 is infinite
	if delta.Share != nil {
		change = *delta.Share
	}
	percent := metric.Beside(100*change, 100*c.Limit)
	if change > 0 {
		percent = "+" + percent
	}
	text := fmt.Sprintf("%s%s: %s of %s is %s, %s %%", name, c.Text, c.Name, of, amount(*value, math.NaN(), row.Unit), percent)
	if delta.Difference == 0 {
		text = fmt.Sprintf("%s%s: %s of %s is %s, as before", name, c.Text, c.Name, of, amount(*value, math.NaN(), row.Unit))
	}
	switch {
	case delta.Adjusted != nil:
		text += " (p=" + metric.Brief(*delta.Adjusted) + ")"
	case delta.NoTest != "":
		text += " (no test: " + delta.NoTest + ")"
	}
	state, why := delta.judge(c, delta.Difference != 0 && c.Holds(change), unsure)
	return Finding{state, name + c.Text, text + why}, true
}

// unsupported returns why a level cannot support the judgement of a difference, or "".
func (l *Level) unsupported(row *Row, sides []Side, side int, c *metric.Condition) string {
	for _, s := range []int{0, side} {
		if why := unusable(&c.Quantity, l.of[s]); why != "" {
			return "in " + sides[s].Name + ", " + why
		}
	}
	for _, s := range []int{0, side} {
		if v := *row.Values[s]; math.IsNaN(v) || math.IsInf(v, 0) {
			return c.Name + " of " + sides[s].Name + " is not a finite number"
		}
		d := row.Deltas[side]
		switch few := needsMore(c, l.of[s]); {
		case few == "" || d.shift.beyond(c):
		case d.NoTest != "" && d.NoTest != noRequests:
			return d.NoTest // it needs even more
		default:
			return "in " + sides[s].Name + ", " + few
		}
	}
	return ""
}

// judge checks a difference that is beyond the limit of a condition, or not. A difference without a test
// is not judged in either direction, because its sign may be random variation.
func (d *Delta) judge(c *metric.Condition, beyond, unsure bool) (state State, why string) {
	tested := d.NoTest == "" || d.NoTest == noRequests
	switch {
	case beyond && (unsure || tested && d.Verdict != Same):
		return Failed, ""
	case beyond && d.shift.beyond(c):
		return Failed, ", and all requests are beyond the limit, not only the tail"
	case !tested && !unsure:
		return NotJudged, ""
	case beyond:
		return Passed, ", which may be random variation"
	}
	return Passed, ""
}

// beyond reports whether the whole distribution, and not only one statistic, is significantly beyond
// the limit of a condition. A few requests suffice to detect an enormous difference, while a percentile
// alone needs many.
func (s *shift) beyond(c *metric.Condition) bool {
	if s == nil || c.Limit <= -1 {
		return false
	}
	off, p := s.from(math.Log1p(c.Limit))
	return p <= gateAlpha && (off > 0) == c.Above
}

// gateAlpha is the accepted share of false positives for a distribution exactly at the limit.
const gateAlpha = 0.05

func (l *Level) row(name string) *Row {
	for i := range l.Rows {
		if l.Rows[i].Name == name {
			return &l.Rows[i]
		}
	}
	return nil
}

// where returns the name of a level as a prefix, or "" if there is only one level.
func where(name string, levels int) string {
	if levels < 2 {
		return ""
	}
	return name + ": "
}

// amount formats a value so that it differs from a limit if the text of the limit does.
func amount(v, limit float64, u metric.Unit) string {
	if u == metric.SeverityUnit {
		return metric.SeverityOf(v)
	}
	return metric.Beside(v, limit) + " " + string(u)
}
