package compare_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// TestFailuresAreCompared compares pairs of runs of which some requests fail. The latencies are equal and vary, so
// that their tests are adjusted with the test of failures, if anything is. TRIES is the number of pairs.
func TestFailuresAreCompared(t *testing.T) {
	pairs := tries(18)
	never := func(*rand.Rand, int) bool { return false }
	single := func(share float64) func(*rand.Rand, int) bool {
		return func(r *rand.Rand, _ int) bool { return r.Float64() < share }
	}
	groups := func(share float64, size int) func(*rand.Rand, int) bool { // size requests fail together
		left := 0
		return func(r *rand.Rand, i int) bool {
			if i == 0 {
				left = 0
			}
			if left--; left < 0 && r.Float64() < share/float64(size) {
				left = size - 1
			}
			return left >= 0
		}
	}
	phases := func(r *rand.Rand, i int) bool { return i%100 < 20 && r.Float64() < 0.15 }
	for _, c := range []struct {
		name        string
		n, repeats  int
		a, b        func(*rand.Rand, int) bool
		least, most float64 // share of pairs whose failures are called different
	}{
		{"0 against 3 % of 400", 400, 1, never, single(0.03), 0.9, 1},
		{"0 against 3 % of 4 x 100", 100, 4, never, single(0.03), 0.9, 1},
		{"1 % against 5 % of 400", 400, 1, single(0.01), single(0.05), 0.8, 1},
		{"none", 400, 1, never, never, 0, 0},
		{"1 % of 400", 400, 1, single(0.01), single(0.01), 0, 0.05},
		{"3 % of 400", 400, 1, single(0.03), single(0.03), 0, 0.05},
		{"30 % of 400", 400, 1, single(0.3), single(0.3), 0, 0.05},
		{"3 % of 4 x 100", 100, 4, single(0.03), single(0.03), 0, 0.05},
		{"3 % of 400, 2 together", 400, 1, groups(0.03, 2), groups(0.03, 2), 0, 0.05},
		{"3 % of 400, 4 together", 400, 1, groups(0.03, 4), groups(0.03, 4), 0, 0.05},
		{"3 % of 400, 12 together", 400, 1, groups(0.03, 12), groups(0.03, 12), 0, 0.05},
		{"in phases", 400, 1, phases, phases, 0, 0.05},
	} {
		called, any := 0, 0
		for i := range pairs {
			r := rand.New(rand.NewPCG(uint64(i), 3))
			var a, b [][]outcome.Level
			for range c.repeats {
				a, b = append(a, failing(r, c.n, c.a)), append(b, failing(r, c.n, c.b))
			}
			d := must.Get(compare.Compare([]compare.Side{side("a", a...), side("b", b...)}, compare.Options{Quantities: defaults(t)}))(t)
			for _, row := range d.Levels[0].Rows {
				if v := row.Deltas[1].Verdict; v == compare.Worse || v == compare.Better {
					any++
					if row.Name == metric.FailureShare {
						called++
					}
				}
			}
		}
		t.Logf("%-26s failures differ in %d of %d pairs, %d significant figures", c.name, called, pairs, any)
		if n, slack := float64(pairs), float64(slack(pairs)); float64(called) < c.least*n-slack || float64(called) > c.most*n+slack {
			t.Errorf("%s: failures differ in %d of %d pairs, want %g to %g", c.name, called, pairs, c.least*n, c.most*n)
		}
	}
}

// failing returns a level of n requests of which some fail.
func failing(r *rand.Rand, n int, fails func(*rand.Rand, int) bool) []outcome.Level {
	var failed []bool
	l := recorded(n, 50*time.Millisecond, func(i int) time.Duration {
		failed = append(failed, fails(r, i))
		return time.Duration((30 + 20*r.ExpFloat64()) * float64(time.Millisecond))
	}, func(i int, rec *tacho.Record) {
		if failed[i] {
			rec.Failure = &tacho.Failure{Cause: tacho.Reset}
		}
	})
	return []outcome.Level{l}
}
