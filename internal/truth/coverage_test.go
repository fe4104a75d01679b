package truth

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/metric"
)

// A coverage is a server whose reports are checked for the coverage of their intervals.
type coverage struct {
	name  string
	c     Case
	load  float64 // requests/s, or the concurrency
	sizes []int   // requests of a run
}

// coverages are servers with short requests and long queues, heavy tails, batches and closed loops.
func coverages() (out []coverage) {
	queue := Queue{Slots: 8, Service: 200 * time.Millisecond, Sigma: 0.8, Lead: 0.25}
	engine := Batch{Slots: 4096, Step: 8 * time.Millisecond, PerSeq: 300 * time.Microsecond, Prefill: 12 * time.Millisecond, Usual: 512}
	fixed := func(servers Case) Case {
		servers.Input, servers.Output = "8", "4"
		return servers
	}
	varied := func(kind string) Case {
		return Case{Servers: engine.Servers, Kind: kind, Input: "lognormal(450,0.5)", Output: "lognormal(56,0.5)"}
	}
	most := engine.most(450, 56)
	for _, at := range []float64{0.4, 0.8, 0.95} {
		out = append(out, coverage{fmt.Sprintf("M/G/8, sigma 0.8, %v", at), fixed(Case{Servers: queue.Servers}), at * 40, []int{100, 300, 1000}})
	}
	pareto := Queue{Slots: 12, Service: 200 * time.Millisecond, Pareto: 1.8, Lead: 0.25}
	out = append(out, coverage{"Pareto 1.8, 0.6", fixed(Case{Servers: pareto.Servers}), 0.6 * 60, []int{300, 1000}})
	for _, at := range []float64{0.4, 0.8, 0.95} {
		sizes := []int{300, 1000}
		if at > 0.5 {
			sizes = []int{1000, 3000}
		}
		out = append(out, coverage{fmt.Sprintf("batching, varied, %v", at), varied(""), at * most, sizes})
	}
	return append(out, coverage{"batching, closed 32", varied("concurrency"), 32, []int{300, 1000}})
}

// summary runs the server once.
func (c *coverage) summary(t *testing.T, requests int, seed uint64) *metric.Summary {
	t.Helper()
	sum := &sums{}
	config := metric.DefaultConfig()
	config.Percentiles = []float64{50, 90, 99}
	if c.c.Kind == "" {
		config.RequestRate = c.load
	} else {
		config.MaxConcurrency = int(c.load)
	}
	config.Goodput = []metric.SLO{{Metric: metric.E2EL.Name, LimitMillis: 500}}
	sum.Goodput = config.Goodput
	if err := c.c.run(c.load, requests, seed, sum); err != nil {
		t.Fatal(err)
	}
	s := sum.Summary(config)
	return &s
}

// covered are the figures of the table.
var covered = []string{"ttft mean", "ttft 50", "ttft 90", "ttft 99", "tpot mean", "e2el mean", "e2el 90", "e2el 99", "goodput"}

// of returns a figure of the table and its interval.
func coveredFigure(s *metric.Summary, name string) (float64, *metric.Interval) {
	if name == "goodput" {
		if s.Steady.Settled == nil {
			return *s.Throughput.GoodPerS, nil
		}
		return *s.Steady.Settled.GoodPerS, s.Steady.Settled.GoodInterval
	}
	key, which, _ := strings.Cut(name, " ")
	stats := s.Dist(metric.Named(key)).Stats
	if which == "mean" {
		return stats.Mean, stats.MeanInterval
	}
	p, err := strconv.ParseFloat(which, 64)
	if err != nil {
		panic(err)
	}
	return stats.Percentile(p), stats.At(p).Interval
}

// A tried counts runs with an interval of a figure, and intervals with the true value.
type tried struct{ runs, given, held int }

// truth returns the figures of long runs.
func (c *coverage) truth(t *testing.T, long int, first uint64) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	const times = 2
	for i := range uint64(times) {
		s := c.summary(t, long, first+i)
		for _, name := range covered {
			v, _ := coveredFigure(s, name)
			out[name] += v / times
		}
	}
	return out
}

// try returns the coverage of each figure.
func (c *coverage) try(t *testing.T, truth map[string]float64, runs, requests int, first uint64) map[string]*tried {
	t.Helper()
	out := map[string]*tried{}
	for i := range uint64(runs) {
		s := c.summary(t, requests, first+100+i)
		for _, name := range covered {
			if out[name] == nil {
				out[name] = &tried{}
			}
			h := out[name]
			h.runs++
			if _, in := coveredFigure(s, name); in != nil && in.Low != nil {
				h.given++
				if *in.Low <= truth[name]*(1+1e-9) && truth[name] <= *in.High*(1+1e-9) {
					h.held++
				}
			}
		}
	}
	return out
}

// Where the queue remembers longer than a run lasts, runs have no interval; elsewhere intervals hold, and most runs of
// 1,000 requests at a low load have one of p99. COVERAGE=1 runs the table of docs/log/intervals.md.
func TestCoverageOfQueues(t *testing.T) {
	number := func(name string, usual int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return usual
	}
	table := os.Getenv("COVERAGE") != ""
	runs, long := 20, 20_000
	if table {
		runs, long = number("RUNS", 100), number("LONG", 60_000)
	}
	first := uint64(number("FIRST", 710_000))
	t.Logf("%-24s %5s  %s", "given/held %", "n", strings.Join(covered, "  "))
	for _, c := range coverages() {
		low, full := strings.HasSuffix(c.name, "sigma 0.8, 0.4"), strings.HasSuffix(c.name, "sigma 0.8, 0.95")
		if !strings.Contains(c.name, os.Getenv("CASE")) || !table && !low && !full {
			continue
		}
		truth := c.truth(t, long, first)
		for _, n := range c.sizes {
			if !table && n == 100 {
				continue
			}
			tried := c.try(t, truth, runs, n, first)
			var cells []string
			for _, name := range covered {
				h := tried[name]
				given, held := float64(h.given)/float64(h.runs), float64(h.held)/math.Max(float64(h.given), 1)
				cells = append(cells, fmt.Sprintf("%3.0f/%-3.0f", 100*given, 100*held))
				if full && given > 0.2 && held < 0.8 {
					t.Errorf("%s, n=%d: %s is given in %.0f %% and holds in %.0f %%", c.name, n, name, 100*given, 100*held)
				}
				if low && n == 1000 && (given < 0.8 || held < 0.7) {
					t.Errorf("%s, n=%d: %s is given in %.0f %% and holds in %.0f %%", c.name, n, name, 100*given, 100*held)
				}
			}
			t.Logf("%-24s %5d  %s", c.name, n, strings.Join(cells, "  "))
		}
	}
}
