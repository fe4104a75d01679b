package truth

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/metric"
)

// A server that does not change is steady. An overload, a server that gets slower and a cold start are not: their window
// is missing or begins later. STEADY is the number of runs.
func TestSteadyStates(t *testing.T) {
	queue := Queue{Slots: 8, Service: 200 * time.Millisecond, Sigma: 0.3, Lead: 0.25} // 40 requests/s
	with := func(change func(q *Queue)) Queue {
		q := queue
		change(&q)
		return q
	}
	cold := with(func(q *Queue) { q.Cold, q.Warmup = 40, 600*time.Millisecond })
	for _, trial := range []struct {
		name   string
		queue  Queue
		rate   float64 // 0: a closed loop of 8
		steady bool
		begins int     // requests after which the window begins at the earliest
		least  float64 // share of runs that must be right
	}{
		{"0.4", queue, 16, true, 0, 0.9},
		{"0.8", queue, 32, true, 0, 0.9},
		{"closed", queue, 0, true, 0, 0.9},
		{"40 cold, open", cold, 16, true, 20, 0.8},
		{"40 cold, closed", cold, 0, true, 20, 0.8},
		{"rising by 50 %, 0.6", with(func(q *Queue) { q.Leak = 0.5 / 0.6 }), 24, false, 0, 0.7},
		{"rising by 20 %, closed", with(func(q *Queue) { q.Leak = 0.2 / 0.6 }), 0, false, 0, 0.3},
		{"overload 1.05", queue, 42, false, 0, 0.9},
		{"overload 1.2", queue, 48, false, 0, 0.9},
	} {
		runs := 8
		if n, err := strconv.Atoi(os.Getenv("STEADY")); err == nil {
			runs = n
		}
		steady, right, why := 0, 0, map[string]int{}
		for seed := range uint64(runs) {
			c := Case{Servers: trial.queue.Servers, Input: "8", Output: "4"}
			config, load := metric.DefaultConfig(), trial.rate
			if config.RequestRate = trial.rate; trial.rate == 0 {
				c.Kind, config.MaxConcurrency, load = "concurrency", 8, 8
			}
			sum := &sums{}
			if err := c.run(load, 600, 70_000+seed, sum); err != nil {
				t.Fatal(err)
			}
			s := sum.Summary(config)
			if s.Steady.Window == nil {
				why[fmt.Sprintf("%.24s", s.Steady.WhyNot)]++
				if !trial.steady {
					right++
				}
				continue
			}
			steady++
			if trial.steady && s.Steady.Window.Requests <= 600-trial.begins {
				right++
			}
		}
		t.Logf("%-24s steady %2d of %d, right %d %v", trial.name, steady, runs, right, why)
		if float64(right) < trial.least*float64(runs) {
			t.Errorf("%s: %d of %d are right", trial.name, right, runs)
		}
	}
}
