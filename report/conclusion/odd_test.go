package conclusion_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
	"github.com/tacho-bench/tacho/report/conclusion"
)

// numbersIn returns all numbers of the results in a value.
func numbersIn(v reflect.Value) (out []*float64) {
	switch v.Kind() {
	case reflect.Float64:
		if v.CanSet() {
			out = append(out, v.Addr().Interface().(*float64))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			out = numbersIn(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			out = append(out, numbersIn(v.Index(i))...)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Config" && name != "P" { // the plan and the names of percentiles
				out = append(out, numbersIn(v.Field(i))...)
			}
		}
	}
	return out
}

// Every sentence about a run can be printed if the results are no usual numbers.
func TestSentencesOfOddNumbers(t *testing.T) {
	all := measured()
	for i := range all {
		one := &all[i]
		for _, odd := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64} {
			for spoilt := -1; spoilt < min(len(one.run.Levels), 2); spoilt++ { // all levels, or one of them
				var numbers []*float64
				for k := range one.run.Levels {
					if spoilt == k || spoilt < 0 {
						numbers = append(numbers, numbersIn(reflect.ValueOf(&one.run.Levels[k].Summary))...)
					}
				}
				usual := make([]float64, len(numbers))
				for k, v := range numbers {
					usual[k], *v = *v, odd
				}
				for _, text := range everySentence(t, &one.run, &all[(i+1)%len(all)].run) {
					if strings.Contains(text, "NaN") || strings.Contains(text, "Inf ") || strings.Contains(text, "+Inf") || strings.Contains(text, "%!") {
						t.Errorf("%s, %v: %s", one.name, odd, text)
					}
				}
				for k, v := range numbers {
					*v = usual[k]
				}
			}
		}
	}
}

// everySentence returns all sentences and tables for people about a run, and about its difference from another.
func everySentence(t *testing.T, r, other *outcome.Run) []string {
	t.Helper()
	c := conclusion.Of(r)
	text := slices.Concat(c.Text, report.Closing(r), report.Doubts("", r.Levels), []string{c.Untried, c.Goal, breakWords(c.Breaks), conclusion.Limit(r.Levels), conclusion.LoadOf(r.Levels), c.Headline.Sentence})
	for _, n := range c.Headline.Numbers() {
		text = append(text, n.Value)
	}
	for _, sides := range [][]outcome.Run{{*other, *r}, {*r, *other}} {
		compared, err := compare.Compare([]compare.Side{{Name: "A", Runs: sides[:1]}, {Name: "B", Runs: sides[1:]}}, compare.Options{Quantities: quantities(t)})
		if err == nil {
			text = append(text, conclusion.OfComparison(compared, 1))
		}
	}
	for _, format := range []string{"text", report.Curve, "markdown"} {
		text = append(text, strings.Split(withoutBlock(render(t, format, r)), "\n")...)
	}
	return text
}

func quantities(t *testing.T) (out []metric.Quantity) {
	t.Helper()
	for _, name := range []string{"ttft.mean", "request_throughput", "failures"} {
		q := must.Get(metric.ParseQuantity(name))(t)
		out = append(out, q)
	}
	return out
}

// withoutBlock leaves out vLLM's blocks, which have Python's spelling of numbers.
func withoutBlock(text string) string {
	for {
		before, rest, found := strings.Cut(text, " Benchmark Result ")
		if !found {
			return text
		}
		_, after, _ := strings.Cut(rest, " Behind the Numbers ")
		text = fmt.Sprintln(before) + after
	}
}
