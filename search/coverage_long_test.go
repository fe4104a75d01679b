//go:build coverage

package search

import (
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"tacho"
	"tacho/pace"
	"tacho/stat"
)

// latencies are what a run in virtual time says of each goal, its first requests
// left out.
func latencies(t *testing.T, v virtual, goals []Goal, rate float64, skip, n int, seed uint64) ([]stat.Series, []stat.Digest) {
	t.Helper()
	series, digests := make([]stat.Series, len(goals)), make([]stat.Digest, len(goals))
	v.run(t, pace.Poisson{Rate: rate, Count: skip + n, Seed: seed}.Arrivals(), 0, seed, func(r *tacho.Record, _ int) bool {
		if int(r.Session) < skip {
			return false
		}
		begun := time.Duration(float64(skip) / rate * float64(time.Second))
		for i, g := range goals {
			g.of(r, func(x float64) {
				series[i].Add(r.Due-begun, x)
				digests[i].Add(x)
			})
		}
		return false
	})
	return series, digests
}

// Intervals of what engines make of requests hold what a long run shows: engines
// and loads by which the method was not tuned, but for one thing: what is done about the
// fixed number of requests was chosen from three ways by these engines.
func TestCoverageOfEngines(t *testing.T) {
	tries := 2000
	if n, err := strconv.Atoi(os.Getenv("TRIES")); err == nil {
		tries = n
	}
	goals, err := ParseSLO("ttft:p99<1s,tpot:p99<1s,e2el:p99<1s")
	if err != nil {
		t.Fatal(err)
	}
	quantiles := []float64{0, 0.5, 0.9, 0.99} // 0 is the mean
	for _, c := range []struct {
		profile string
		rate    float64
	}{{"vllm-405b-mi300x", 0.5}, {"vllm-8b-h200", 12}, {"llamacpp-8b-q4-rtx4090", 0.5}, {"prefill-decode-002", 8}} {
		t.Run(c.profile, func(t *testing.T) {
			t.Parallel()
			v := newVirtual(t, c.profile)
			_, long := latencies(t, v, goals, c.rate, 1000, 100*tries, 1<<40)
			truth := make([][4]float64, len(goals))
			for i := range long {
				whole := long[i].Distribution()
				for k, q := range quantiles {
					truth[i][k] = whole.Quantile(q)
				}
				truth[i][0] = whole.Mean()
			}
			given, held := make([][4]atomic.Int64, len(goals)), make([][4]atomic.Int64, len(goals))
			onAllCores(tries, func(try int) {
				series, digests := latencies(t, v, goals, c.rate, 200, 800, uint64(try)+1)
				for i := range goals {
					sure := series[i].Sure(digests[i].Distribution(), &series[0])
					for k, q := range quantiles {
						got, want := sure.Mean, truth[i][k]
						if q > 0 {
							got = sure.Quantile(q)
						}
						given[i][k].Add(int64(failed(got.Warning == "")))
						held[i][k].Add(int64(failed(got.Warning == "" && got.Low <= want && want <= got.High)))
					}
				}
			})
			for i, g := range goals {
				for k, q := range quantiles {
					all, given, held := float64(tries), float64(given[i][k].Load()), float64(held[i][k].Load())
					share, wrong := held/max(given, 1), (given-held)/all
					t.Logf("%-24s %4v/s %s q%-4v held %.3f of %.3f that are given; false in %.3f of all", c.profile, c.rate, g.Metric.Name, q, share, given/all, wrong)
					// Of a mean that rare rushes make, fewer hold than should.
					if given >= 0.95*all && share < 0.84 || wrong > 0.16 {
						t.Errorf("%s at %v/s, %s, quantile %v: %.3f hold, %.3f are false", c.profile, c.rate, g.Metric.Name, q, share, wrong)
					}
				}
			}
		})
	}
}
