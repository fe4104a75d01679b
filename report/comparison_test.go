package report

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
)

// p takes at most seven characters, because rows must fit into 80 columns.
func TestDeltaWordsAreShort(t *testing.T) {
	first := 6.37
	for _, p := range []float64{1e-9, 0.0004, 0.0007, 0.00099, 0.001, 0.004, 0.2} {
		d := &compare.Delta{Difference: -0.5, Adjusted: &p, Verdict: compare.Better}
		row := &compare.Row{Values: []*float64{&first, &first}, Deltas: []*compare.Delta{nil, d}}
		if _, _, verdict := deltaWords(row, 1); len(verdict) > len("p=0.001 better") || !strings.HasSuffix(verdict, "better") {
			t.Errorf("p %v: %q", p, verdict)
		}
	}
}

// A comparison fits into 80 columns with long names and large changes.
func TestComparisonsFitATerminal(t *testing.T) {
	first, second, low, high, p := 1234567.8, 98765432.1, 12345678.9, 99999999.9, 0.0001
	share := (second - first) / first
	d := &compare.Delta{Difference: second - first, Share: &share, Low: &low, High: &high, Adjusted: &p, Verdict: compare.Better}
	row := &compare.Row{Values: []*float64{&first, &second}, Deltas: []*compare.Delta{nil, d}}
	small := &compare.Row{Values: []*float64{&p, &p}, Deltas: []*compare.Delta{nil, {Verdict: compare.Same}}}
	for _, name := range []string{"short", "request-rate 12.5 max-concurrency 64 (3 runs of A, 3 of B)"} {
		var out strings.Builder
		writeTables(&out, []comparisonTable{{title: name, side: 1, lines: []comparisonLine{{name, row}, {name, small}}}})
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > TextWidth {
				t.Errorf("%d columns: %s", n, line)
			}
		}
		if !strings.Contains(out.String(), "better") || !strings.Contains(out.String(), name[:5]) {
			t.Error(out.String())
		}
		t.Log(out.String())
	}
}

// Figures and differences have three significant digits, and the digits before the point of large
// ones.
func TestComparisonsHaveThreeDigits(t *testing.T) {
	for _, c := range []struct {
		first, second            float64
		figure, relative, number string
	}{
		{54.62, 60.13, "54.6", "+10.1%", "+5.51"},
		{633.17, 611.05, "633", "-3.49%", "-22.1"},
		{11427.55, 34282.65, "11,428", "+200%", "+22,855"},
		{2, 2, "2", "0%", "0"},
		{449.1, 449, "449", "-0.0223%", "-0.1"},
	} {
		difference := c.second - c.first
		share := difference / c.first
		row := &compare.Row{Values: []*float64{&c.first, &c.second}, Deltas: []*compare.Delta{nil, {Difference: difference, Share: &share}}}
		change, _, _ := deltaWords(row, 1)
		if number := metric.Signed(difference); figureOr(&c.first) != c.figure || change != c.relative || number != c.number {
			t.Errorf("%v, %v: %s %s %s", c.first, c.second, figureOr(&c.first), change, number)
		}
	}
}

// A comparison says in a sentence which tests found a difference, below the tables. Sentences use the width
// of the terminal, and a side without a common level has no table.
func TestComparisonAnswersLast(t *testing.T) {
	side := func(name, rate string, mean float64) compare.Side {
		l := outcome.Level{Setting: outcome.Setting{Name: "--request-rate " + rate, Value: rate, Coordinates: outcome.Coordinates{{Name: "request-rate", Value: rate}}}}
		l.Summary.Completed, l.Summary.Requests = 100, 100
		l.Summary.Verdict.Severity = metric.Valid
		l.Summary.Dists = []metric.Dist{{Name: "ttft", Unit: metric.Millis, N: 100, Stats: &metric.Stats{Mean: mean, Median: mean}}}
		return compare.Side{Name: name, Runs: []outcome.Run{{Levels: []outcome.Level{l}}}}
	}
	q := must.Get(metric.ParseQuantity("ttft.mean"))(t)
	c := must.Get(compare.Compare([]compare.Side{side("first", "1", 200), side("second", "1", 250), side("third", "2", 300)}, compare.Options{Quantities: []metric.Quantity{q}}))(t)
	c.Wide = 200
	var out strings.Builder
	must.Do(t, comparisonText(&out, c))
	text, answer := out.String(), conclusion.OfComparison(c, 1)
	if at := strings.Index(text, "\n"+answer+"\n"); at < strings.Index(text, "95 %") || strings.Contains(text, notMeasured) {
		t.Errorf("want %q after the table in\n%s", answer, text)
	}
}

// What differs comes first. Of several levels, equal rows are printed only with --verbose, or if nothing was tested.
func TestRowsThatDifferComeFirst(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	verdicts := []compare.Verdict{compare.Same, compare.Untold, compare.Better, compare.Worse}
	for try := range 300 {
		levels, tested := 1+try%3, try%7 > 0
		c := &compare.Comparison{Sides: make([]compare.Side, 3), Verbose: try%2 == 0}
		all := 0
		for i := range levels {
			l := compare.Level{Name: fmt.Sprintf("--request-rate %d", i+1), Runs: []int{1, 1, 1}}
			for _, name := range []string{"ttft.mean", "tpot.mean", "e2el.mean", "requests_per_s"} {
				row := compare.Row{Name: name, Values: []*float64{new(1.0), new(2.0), new(3.0)}, Deltas: make([]*compare.Delta, 3)}
				for side := 1; side < 3; side++ {
					row.Deltas[side] = &compare.Delta{Verdict: verdicts[random.IntN(len(verdicts))]}
					if tested {
						row.Deltas[side].P = new(0.5)
					}
					all++
				}
				l.Rows = append(l.Rows, row)
			}
			c.Levels = append(c.Levels, l)
		}
		tables, omitted := differing(c, comparisonTables(c))
		short, shown := levels > 1 && !c.Verbose && tested, 0
		last := map[int]bool{} // whether rows without a difference were printed, by side
		for _, table := range tables {
			any := false
			for _, l := range table.lines {
				d := l.row.Deltas[table.side].Verdict
				differs := d == compare.Better || d == compare.Worse
				any, shown = any || differs, shown+1
				if short && !differs {
					t.Errorf("%d: prints a row with %q", try, d)
				}
				if levels == 1 {
					if differs && last[table.side] {
						t.Errorf("%d: prints a difference below an equal row", try)
					}
					last[table.side] = last[table.side] || !differs
				}
			}
			if levels > 1 && any && last[table.side] {
				t.Errorf("%d: prints a table with a difference below an equal one", try)
			}
			last[table.side] = last[table.side] || !any
		}
		if want := fmt.Sprintf("%d rows without", all-shown); short && all > shown && !strings.HasPrefix(omitted, want) || !short && (shown != all || omitted != "") {
			t.Errorf("%d: prints %d of %d rows and says %q", try, shown, all, omitted)
		}
	}
}
