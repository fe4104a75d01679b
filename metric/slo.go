package metric

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// An SLO of a level limits statistics of all its requests: "ttft:p99<500ms,error<1%". Config.Goodput limits each
// request instead.

// failuresOfMean is the share of failed requests with which a level still meets a limit for a mean.
const failuresOfMean = 0.01

// ParseSLO parses limits for percentiles and means of metrics, and for the share of failed requests. tacho find and
// tacho bench share it.
func ParseSLO(text string) ([]Condition, error) {
	conditions, err := ParseConditions(text)
	if err != nil {
		return nil, err
	}
	for i := range conditions {
		if err := conditions[i].checkGoal(); err != nil {
			return nil, fmt.Errorf("%q: %w", conditions[i].Text, err)
		}
	}
	return conditions, nil
}

// checkGoal returns an error if a condition is no limit that requests can meet.
func (c *Condition) checkGoal() error {
	switch {
	case c.Relative:
		return errors.New("a goal cannot be relative to another run: write ttft:p99<500ms")
	case !(c.Limit > 0):
		return errors.New("its limit must be above 0")
	case c.Name == FailureShare && (c.Above || c.Limit >= 100):
		return errors.New("write it as error<0.1%")
	case c.Name == GoodputShare && (!c.Above || c.Limit >= 100):
		return errors.New("write it as goodput>95%")
	case c.Name == GoodputShare:
		return nil
	case c.Name == FailureShare, c.OfLevel() && !c.Above:
		return nil
	case c.OfLevel():
		return errors.New("less is better there: write < in place of >")
	case c.Metric == nil:
		return fmt.Errorf("%s is one number for a level, and no request keeps or misses it: write limits on metrics, as ttft:p99<500ms, and error<0.1%%", c.Name)
	case c.Above && c.Better < 0:
		return errors.New("less is better there: write < in place of >")
	case !c.Above && c.Better > 0:
		return errors.New("more is better there: write > in place of <")
	}
	return nil
}

// OfLevel reports whether the quantity describes the pauses of a level: a goal that the level keeps or misses, but no
// single request.
func (q *Quantity) OfLevel() bool { return q.Name == pausesQuantity || q.Name == longestPauseQuantity }

// HasSLO reports whether the run sets an SLO for its levels or for each of its requests.
func (c *Config) HasSLO() bool { return c.SLO != "" || len(c.Goodput) > 0 }

// Goals returns the conditions of the SLO of a level.
func (c *Config) Goals() []Condition {
	if c.SLO == "" {
		return nil
	}
	goals, _ := ParseSLO(c.SLO) // Validate has checked it
	return goals
}

// A Standing says how a level does at a goal.
type Standing string

// The standings. An INVALID figure and a figure that was not measured are not judged.
const (
	Met       Standing = "met"
	Missed    Standing = "missed"
	NotJudged Standing = "not judged"
)

// Standing judges a level by a goal. A failed request counts as infinitely slow, so a level misses a percentile if
// more requests failed than the percentile leaves out.
func (c *Condition) Standing(s *Summary) Standing {
	if c.Unusable(s) != "" {
		return NotJudged
	}
	allowed := failuresOfMean
	switch {
	case c.Above && c.P > 0: // low values are the slow ones
		allowed = c.P / 100
	case c.P > 0:
		allowed = 1 - c.P/100
	}
	const rounding = 1e-9
	failed, _ := ratio(s.Failed, s.Ended())
	v, known := c.Of(s)
	switch {
	case c.Metric != nil && failed > allowed+rounding:
		return Missed
	case !known, math.IsNaN(v):
		return NotJudged
	case c.Above && v < c.Limit || !c.Above && v > c.Limit || c.OfLevel() && v == c.Limit: // pauses<1 is none
		return Missed
	}
	return Met
}

// Standing judges a level by all goals of its SLO.
func (s *Summary) Standing() Standing {
	out := Met
	for _, g := range s.Config.Goals() {
		switch g.Standing(s) {
		case Missed:
			return Missed
		case NotJudged:
			out = NotJudged
		}
	}
	return out
}

// Goal returns a goal for people: "TTFT p99 < 500 ms".
func (c *Condition) Goal() string {
	title, sign, unit := c.Title, "<", " "+string(c.Unit)
	switch {
	case c.Name == FailureShare:
		title = "failed requests"
	case c.Name == GoodputShare:
		title = "goodput"
	case c.Metric != nil && c.P == 0:
		title = "mean " + strings.ToUpper(c.Metric.Name)
	}
	if c.Above {
		sign = ">"
	}
	if c.Unit == "" {
		unit = ""
	}
	return fmt.Sprintf("%s %s %s%s", title, sign, Setting(c.Limit), unit)
}

// Negated returns the condition that a missed goal fulfils, for gates.
func (c *Condition) Negated() Condition {
	out := *c
	out.Above = !c.Above
	return out
}
