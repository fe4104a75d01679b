package step

import (
	"math/rand/v2"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// BenchmarkTwoMillionTokens serves the 3,000 requests of report 003 in virtual
// time.
func BenchmarkTwoMillionTokens(b *testing.B) {
	rows := must.Get(seedRows())(b)
	p, err := Load("rate-limited-003")
	must.Do(b, err)
	arrivals := openLoop(rows[len(rows)-1], rand.New(rand.NewPCG(1, 1)))
	var stats Stats
	for b.Loop() {
		if _, stats, err = Simulate(p, 1, arrivals); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(stats.GeneratedTokens), "tokens/run")
	b.ReportMetric(float64(stats.Steps), "steps/run")
}
