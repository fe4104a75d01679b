package conclusion

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// OfComparison says how a side of a comparison differs from the first side. INVALID
// levels support no conclusion, and a sentence from DEGRADED levels says so.
func OfComparison(c *compare.Comparison, side int) string {
	first, name := clip(c.Sides[0].Name, mostName), clip(c.Sides[side].Name, mostName)
	var d differences
	var usable []outcome.Level
	var invalid []string
	for i := range c.Levels {
		l := &c.Levels[i]
		if len(l.Of(0)) == 0 || len(l.Of(side)) == 0 {
			continue
		}
		var both []outcome.Level
		for _, level := range slices.Concat(l.Of(0), l.Of(side)) {
			both = append(both, *level)
		}
		if len(leftOut(both)) > 0 {
			invalid = append(invalid, cmp.Or(NameOf(&both[0]), "the only level"))
			continue
		}
		usable = append(usable, both...)
		d.add(l, side, NameOf(&both[0]))
	}
	several := len(c.Levels) > 1
	var text string
	switch {
	case len(usable) == 0 && len(invalid) > 0:
		return clip("No conclusion, because every level in common is INVALID: "+someOf(invalid)+".", mostSentence)
	case len(usable) == 0:
		return clip(fmt.Sprintf("%s and %s have no level in common.", name, first), mostSentence)
	case d.tests == 0:
		text = fmt.Sprintf("No difference between %s and %s can be tested%s.%s", name, first, d.why(), d.measured("Measured", several))
	case len(d.significant) == 0:
		text = fmt.Sprintf("No significant difference between %s and %s in %s.%s", name, first, plural(d.tests, "test"), d.measured("Largest measured difference", several))
	default:
		text = d.sentence(name, first, several)
	}
	if v := worst(usable); v == metric.Degraded || v == metric.Predicted {
		text = string(v) + ": " + text
	}
	if len(invalid) > 0 {
		text += " Excluded because INVALID: " + someOf(invalid) + "."
	}
	return clip(text, mostSentence)
}

// A difference is a quantity that differs, at the level with its largest difference.
type difference struct {
	row   *compare.Row
	side  int
	level string
}

// differences are the tested and untested differences of a side.
type differences struct {
	tests       int
	significant map[compare.Verdict][]difference
	untested    []difference
	reasons     []string // why there is no test
}

// add adds a level.
func (d *differences) add(l *compare.Level, side int, level string) {
	for i := range l.Rows {
		row := &l.Rows[i]
		delta := row.Deltas[side]
		if delta == nil || delta.Verdict == compare.Void {
			continue
		}
		one := difference{row, side, level}
		if delta.NoTest != "" && !slices.Contains(d.reasons, delta.NoTest) {
			d.reasons = append(d.reasons, delta.NoTest)
		}
		switch delta.Verdict {
		case compare.Untold:
			d.untested = append(d.untested, one)
		case compare.Same:
			d.tests++
			d.untested = append(d.untested, one)
		default:
			d.tests++
			if d.significant == nil {
				d.significant = map[compare.Verdict][]difference{}
			}
			d.significant[delta.Verdict] = append(d.significant[delta.Verdict], one)
		}
	}
}

// why returns the reason for missing tests, in brackets.
func (d *differences) why() string {
	if len(d.reasons) == 0 {
		return ""
	}
	return " (" + d.reasons[0] + ")"
}

// sentence names the significant differences, the largest first.
func (d *differences) sentence(name, first string, several bool) string {
	words := []struct {
		verdict compare.Verdict
		word    string
	}{{compare.Worse, "worse"}, {compare.Better, "better"}, {compare.More, "higher"}, {compare.Less, "lower"}}
	var parts []string
	found := 0
	for _, w := range words {
		if all := d.significant[w.verdict]; len(all) > 0 {
			parts = append(parts, w.word+" in "+largest(all, several))
			found += len(all)
		}
	}
	text := fmt.Sprintf("%s is %s than %s.", name, strings.Join(parts, ", and "), first)
	if len(parts) == 1 {
		word, what, _ := strings.Cut(parts[0], " in ")
		text = fmt.Sprintf("%s is %s than %s in %s.", name, word, first, what)
	}
	if same := d.tests - found; same > 0 {
		text += fmt.Sprintf(" No significant difference in %d of %s.", same, plural(d.tests, "test"))
	}
	return text
}

// measured names the largest difference that is not significant or was not tested.
func (d *differences) measured(before string, several bool) string {
	all := slices.DeleteFunc(slices.Clone(d.untested), func(one difference) bool { return one.size() == 0 })
	if len(all) == 0 {
		return ""
	}
	top := slices.MaxFunc(all, func(a, b difference) int { return cmp.Compare(a.size(), b.size()) })
	tested := ""
	if d.tests > 0 && top.row.Deltas[top.side].Verdict == compare.Untold {
		tested = " (not tested)"
	}
	return fmt.Sprintf(" %s: %s%s.", before, top.words(several), tested)
}

// mostDifferences is the number of quantities named in a sentence.
const mostDifferences = 3

// largest names the quantities with the largest differences. Each quantity is named once.
func largest(all []difference, several bool) string {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b difference) int { return cmp.Compare(b.size(), a.size()) })
	var names, words []string
	for _, one := range all {
		if slices.Contains(names, one.row.Name) {
			continue
		}
		if names = append(names, one.row.Name); len(names) <= mostDifferences {
			words = append(words, one.words(several))
		}
	}
	text := strings.Join(words, ", ")
	if more := len(names) - mostDifferences; more > 0 {
		text += " and " + plural(more, "more quantity", "more quantities")
	}
	return text
}

// size orders differences of quantities with different units.
func (d difference) size() float64 {
	delta := d.row.Deltas[d.side]
	if delta.Share == nil || *delta.Share <= -1 {
		return math.Abs(delta.Difference)
	}
	return math.Abs(math.Log1p(*delta.Share))
}

// words returns the difference and, if it has a test, its interval.
func (d difference) words(several bool) string {
	delta, base := d.row.Deltas[d.side], d.row.Values[0]
	change := func(v float64) string {
		if delta.Share == nil || d.row.Unit == "%" {
			return metric.Signed(v)
		}
		return metric.Signed(100 * v / math.Abs(*base))
	}
	unit := " %"
	switch {
	case d.row.Unit == "%":
		unit = " percentage points"
	case delta.Share == nil:
		unit = " " + string(d.row.Unit)
	}
	text := d.row.Quantity.Title
	if d.row.Quantity.Metric == nil && d.row.Unit != "%" {
		text += " (" + string(d.row.Unit) + ")"
	}
	text += " by " + change(delta.Difference) + unit
	if delta.Low != nil && delta.High != nil {
		text += fmt.Sprintf(" [%s, %s]", change(*delta.Low), change(*delta.High))
	}
	if several && d.level != "" {
		text += " at " + inSentence(d.level)
	}
	return text
}

// plural counts things. The plural form has an s, unless another form is given.
func plural(n int, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return metric.Integer(n) + " " + many[0]
	}
	return metric.Integer(n) + " " + one + "s"
}
