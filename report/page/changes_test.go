package page_test

import (
	"testing"

	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// The page shows the verdicts of tacho compare.
func TestVerdictsMatchCompare(t *testing.T) {
	const n = 400
	first, same := withRecords("first", 0, requests(0, n, 10, 0), requests(1, n, 20, 0)), withRecords("same", ms/100, requests(0, n, 10, 0))
	slow, bare := withRecords("slow", 50*ms, requests(0, n, 10, 0)), withRecords("bare", 0, requests(0, n, 10, 0))
	bare.Levels[0].Records = nil
	runs := []outcome.Run{first, same, slow, bare}
	var v struct {
		Runs []struct {
			Levels []struct {
				Against *struct {
					Levels []int
					Rows   []struct {
						Name    string
						Times   float64
						Verdict compare.Verdict
					}
				}
			}
		}
	}
	data(t, write(t, runs...), &v)
	for _, l := range v.Runs[0].Levels {
		if l.Against != nil {
			t.Error("the first run is compared with itself")
		}
	}
	c := compared(t, runs)
	for k, want := range []compare.Verdict{1: compare.Same, 2: compare.Worse, 3: compare.Untold} {
		if k == 0 {
			continue
		}
		got := v.Runs[k].Levels[0].Against
		if got == nil || len(got.Levels) != 1 || got.Levels[0] != 0 || len(got.Rows) != 5 {
			t.Fatalf("run %d: %+v", k, got)
		}
		for _, row := range got.Rows {
			if row.Name == "ttft.mean" && row.Verdict != want {
				t.Errorf("run %d: mean TTFT is %q (%v times), want %q", k, row.Verdict, row.Times, want)
			}
			for _, other := range c.Levels[0].Rows {
				if other.Name == row.Name && other.Deltas[k].Verdict != row.Verdict {
					t.Errorf("run %d: %s is %q, and compare says %q", k, row.Name, row.Verdict, other.Deltas[k].Verdict)
				}
			}
		}
	}
}

// compared returns the comparison of runs by tacho compare.
func compared(t *testing.T, runs []outcome.Run) *compare.Comparison {
	t.Helper()
	var o compare.Options
	for _, name := range compare.Quantities {
		q := must.Get(metric.ParseQuantity(name))(t)
		o.Quantities = append(o.Quantities, q)
	}
	var sides []compare.Side
	for i := range runs {
		sides = append(sides, compare.Side{Name: runs[i].Name, Runs: runs[i : i+1]})
	}
	return must.Get(compare.Compare(sides, o))(t)
}
