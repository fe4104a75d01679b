package search

import (
	"math"
	"os"
	"strconv"
	"testing"
	"time"
)

// What is searched for: the SLO of the documents, on engines whose limits are
// known from long virtual runs (TestLimitsAreTrue).
var proofs = []struct {
	profile, slo string
	limit        float64 // requests per second
	most         float64 // requests per second that the engine can serve at all
}{
	{"vllm-8b-h100", "ttft:p99<500ms,tpot:p95<50ms,error<0.1%", 17.30, 20.2},
	{"sglang-70b-h100x4", "ttft:p99<500ms,tpot:p95<50ms,error<0.1%", 4.43, 9.44},
	{"trtllm-70b-fp8-h100x2", "ttft:p99<500ms,tpot:p95<50ms,error<0.1%", 7.32, 11.9},
	{"prefill-decode-002", "ttft:p99<500ms,tpot:p95<50ms,error<0.1%", 10.79, 14.3},
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
// `make test-find` runs SEEDS searches for each engine, and prints the table of
// docs/find.md; here one must do, with more room for chance.
func TestLimitsAreFound(t *testing.T) {
	seeds, err := strconv.Atoi(os.Getenv("SEEDS"))
	whole := err == nil
	if !whole {
		seeds = 1
	}
	for _, p := range proofs {
		v := newVirtual(t, p.profile)
		goals, err := ParseSLO(p.slo)
		if err != nil {
			t.Fatal(err)
		}
		within, inside, probes, longest, worst, squares := 0, 0, 0, time.Duration(0), 0.0, 0.0
		for seed := range uint64(seeds) {
			s := New(Rate, goals)
			took := v.search(t, s, seed*1000003+17)
			l := s.Limit(true)
			off := l.Load/p.limit - 1
			squares += off * off
			within += int(failed(math.Abs(off) <= 0.05))
			inside += int(failed(l.Low <= p.limit && p.limit <= l.High))
			probes, longest, worst = max(probes, len(s.Results)), max(longest, took), max(worst, math.Abs(off))
			if whole {
				t.Logf("%s, seed %d: %.2f (%.2f to %.2f), %+.1f %%, %d probes, %.0f s", p.profile, seed, l.Load, l.Low, l.High, 100*off, len(s.Results), took.Seconds())
			}
		}
		sweep := plainSweep(p.most)
		if whole {
			t.Logf("| %s | %.2f | %d of %d | %.1f %% | %.1f %% | %d of %d | %d | %.2f |", p.profile, p.limit, within, seeds,
				100*math.Sqrt(squares/float64(seeds)), 100*worst, inside, seeds, probes, longest.Seconds()/sweep.Seconds())
		}
		if worst > 0.12 || probes >= 12 || longest > sweep/2 {
			t.Errorf("%s: off by %.1f %%, %d probes, %.2f of a sweep", p.profile, 100*worst, probes, longest.Seconds()/sweep.Seconds())
		}
	}
}

// The limits are those of long runs: half a million requests at each.
func TestLimitsAreTrue(t *testing.T) {
	if os.Getenv("SEEDS") == "" {
		t.Skip("make test-find")
	}
	for _, p := range proofs {
		v := newVirtual(t, p.profile)
		goals, err := ParseSLO(p.slo)
		if err != nil {
			t.Fatal(err)
		}
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
