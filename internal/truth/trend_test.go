package truth

import (
	"slices"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

// A sums is an accumulator as a sink.
type sums struct{ metric.Accumulator }

// Close implements tacho.Sink.
func (*sums) Close() error { return nil }

// A closed loop is checked for latencies that rise during the run, and for a slow start. A server that does not change
// gets a note in at most one of 30 runs.
func TestTrendOfClosedLoops(t *testing.T) {
	const most, nearly = 1, 28
	seeds := 30
	if testing.Short() {
		seeds = 10
	}
	queue := Queue{Slots: 8, Service: 100 * time.Millisecond, Sigma: 0.3}
	slower, cold := queue, queue
	slower.Leak = 0.2 // per 1,000 requests, which is 20 % in this run
	cold.Cold, cold.Warmup = 40, 300*time.Millisecond
	for _, trial := range []struct {
		name         string
		c            Case
		users        float64
		trend, start bool
	}{
		{"a steady queue", Case{Servers: queue.Servers}, 8, false, false},
		{"a steady engine, which gets 32 prompts at once", Case{Profile: "vllm-8b-h100"}, 32, false, true},
		{"20 % slower at the end", Case{Servers: slower.Servers}, 8, true, false},
		{"40 first requests take four times as long", Case{Servers: cold.Servers}, 8, false, true},
	} {
		trial.c.Kind, trial.c.Input, trial.c.Output = "concurrency", "lognormal(450,0.5)", "lognormal(56,0.5)"
		found := map[string]int{}
		for seed := range uint64(seeds) {
			sum := &sums{}
			must.Do(t, trial.c.run(trial.users, 1000, seed, sum))
			config := metric.DefaultConfig()
			config.MaxConcurrency = int(trial.users)
			s := sum.Summary(config)
			for _, r := range s.Verdict.Reasons {
				found[r.Code]++
			}
			trend := slices.ContainsFunc(s.Verdict.Reasons, func(r metric.Reason) bool { return r.Code == "latency-trend" })
			if closed := s.Steady.WhyNot == metric.StillMoving; closed != trend {
				t.Errorf("%s: a note is %t, but the steady window: %q", trial.name, trend, s.Steady.WhyNot)
			}
		}
		t.Logf("%s: %v of %d", trial.name, found, seeds)
		for code, expected := range map[string]bool{"latency-trend": trial.trend, metric.SlowStart: trial.start} {
			if n := found[code]; expected && 30*n < nearly*seeds || !expected && n > most {
				t.Errorf("%s: %d of %d runs have the note %s", trial.name, n, seeds, code)
			}
		}
	}
}
