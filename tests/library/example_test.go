package library

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/tacho-bench/tacho/bench"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// Measure a server and print a percentile. The server is a simulated engine in
// virtual time, so that the example has the same result everywhere. For a real
// server, set BaseURL instead of Sim and Virtual.
func Example_run() {
	p := plan.Default()
	p.Sim, p.Virtual = "vllm-8b-h100", true
	p.NumPrompts, p.RequestRate, p.Seed = 200, 10, new(uint64(1))
	p.RunsDir, _ = os.MkdirTemp("", "runs")
	defer func() { _ = os.RemoveAll(p.RunsDir) }()
	result, err := bench.Run(context.Background(), p, bench.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ttft := result.Levels[0].Summary.Dist(metric.TTFT).Stats
	fmt.Printf("TTFT p99: %.0f ms\n", ttft.Percentile(99))
	// Output: TTFT p99: 100 ms
}

// Find the highest rate at which the slowest 5 % of requests get their first token
// within 500 ms.
func Example_find() {
	p := plan.Default()
	p.Sim, p.Virtual, p.Seed = "vllm-8b-h100", true, new(uint64(1))
	p.RandomInputLen, p.RandomOutputLen = workload.Fixed(200), workload.Fixed(20)
	p.RunsDir, _ = os.MkdirTemp("", "runs")
	defer func() { _ = os.RemoveAll(p.RunsDir) }()
	limit, err := bench.Find(context.Background(), p, bench.Goal{SLO: "ttft:p95<500ms", Within: "20%"}, bench.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.0f requests/s, decided: %v\n", limit.Load, limit.Decided)
	// Output: 147 requests/s, decided: true
}
