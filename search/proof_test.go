package search

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"
	"time"
)

// What is searched for: the SLO of the documents, on engines whose limits are
// known from long virtual runs (TestLimitsAreTrue).
var proofs = []proof{
	{"vllm-8b-h100", "ttft:p99<500ms,tpot:p95<50ms,error<0.1%", 22.37, 25.0},
	{"sglang-70b-h100x4", "ttft:p99<500ms,tpot:p95<50ms,error<0.1%", 4.44, 9.44},
	{"trtllm-70b-fp8-h100x2", "ttft:p99<500ms,tpot:p95<50ms,error<0.1%", 7.34, 11.9},
	{"prefill-decode-002", "ttft:p99<500ms,tpot:p95<50ms,error<0.1%", 10.80, 14.3},
}

type proof struct {
	profile, slo string
	limit        float64 // requests per second
	most         float64 // requests per second that the engine can serve at all
}

func (p proof) goals(t *testing.T) []Goal {
	t.Helper()
	goals, err := ParseSLO(p.slo)
	if err != nil {
		t.Fatal(err)
	}
	return goals
}

// plainSweep is how long ten levels of 1,000 requests take, which is the default
// of --num-prompts, at a tenth, two tenths, ... and all of what an engine serves.
func plainSweep(most float64) time.Duration {
	sum := 0.0
	for i := range 10 {
		sum += 1000 / (most * float64(i+1) / 10)
	}
	return time.Duration(sum * float64(time.Second))
}

// The limit is found, in few probes, and in a part of the time that a sweep takes.
// `make test-find` runs SEEDS searches for each engine, from seed FIRST on, and
// prints the table of docs/find.md; here one must do. The search was tuned on seeds
// 0 to 19: what it is worth shows on others. One search in ten may be off by more
// than 5 %, and none by more than 8 %.
func TestLimitsAreFound(t *testing.T) {
	seeds, err := strconv.Atoi(os.Getenv("SEEDS"))
	whole := err == nil
	if !whole {
		seeds = 1
	}
	first, _ := strconv.Atoi(os.Getenv("FIRST")) // 0 where nobody says
	for _, p := range proofs {
		t.Run(p.profile, func(t *testing.T) {
			t.Parallel()
			found := tally{}
			for seed := first; seed < first+seeds; seed++ {
				s := New(Rate, p.goals(t))
				took := newVirtual(t, p.profile).search(t, s, uint64(seed)*1000003+17)
				l := s.Limit(true)
				found.add(l, p.limit, took.Seconds()/plainSweep(p.most).Seconds())
				t.Logf("seed %d: %.2f (%.2f to %.2f), %+.1f %%, %d probes, %.3f", seed, l.Load, l.Low, l.High, 100*(l.Load/p.limit-1), len(l.Probes), took.Seconds()/plainSweep(p.most).Seconds())
			}
			if whole {
				t.Logf("| %s | %.2f | %s |", p.profile, p.limit, found)
			}
			if found.worst > 0.08 || found.probes >= 12 || found.longest > 0.25 || whole && 10*found.within < 9*found.n {
				t.Errorf("%s: off by %.1f %%, %d probes, %.2f of a sweep", p.profile, 100*found.worst, found.probes, found.longest)
			}
		})
	}
}

// A tally is what some searches came to.
type tally struct {
	n, within, inside, probes           int
	sum, squares, worst, longest, spent float64 // times are parts of a plain sweep
}

func (c *tally) add(l Limit, truth, took float64) {
	off := l.Load/truth - 1
	c.n++
	c.within += int(failed(math.Abs(off) <= 0.05))
	c.inside += int(failed(l.Low <= truth && truth <= l.High))
	c.probes = max(c.probes, len(l.Probes))
	c.sum, c.squares, c.worst = c.sum+off, c.squares+off*off, max(c.worst, math.Abs(off))
	c.longest, c.spent = max(c.longest, took), c.spent+took
}

// String is the rest of a row: within 5 %, mean error, root mean square error, worst,
// limit in the interval, most probes, usual and most time.
func (c tally) String() string {
	n := float64(c.n)
	return fmt.Sprintf("%d of %d | %.1f %% | %.1f %% | %.1f %% | %d of %d | %d | %.2f | %.2f", c.within, c.n,
		100*c.sum/n, 100*math.Sqrt(c.squares/n), 100*c.worst, c.inside, c.n, c.probes, c.spent/n, c.longest)
}

// The limits are those of long runs: half a million requests at each.
func TestLimitsAreTrue(t *testing.T) {
	if os.Getenv("SEEDS") == "" {
		t.Skip("make test-find")
	}
	for _, p := range proofs {
		v := newVirtual(t, p.profile)
		goals := p.goals(t)
		breaks := func(load float64) bool {
			sum := make([]float64, len(goals))
			for seed := range uint64(6) {
				for i, e := range v.long(t, goals, load, 80_000, seed+1) {
					sum[i] += e.Pressure / 6
				}
			}
			for _, pressure := range sum {
				if pressure > 1 {
					return true
				}
			}
			return false
		}
		if breaks(0.985*p.limit) || !breaks(1.015*p.limit) {
			t.Errorf("%s: the limit is not within 1.5 %% of %v", p.profile, p.limit)
		}
	}
}
