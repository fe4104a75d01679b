package proof

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/stat"
)

// BenchmarkLag sends 2,000 requests per second for a minute and measures the
// send lag and its growth.
func BenchmarkLag(b *testing.B) {
	for b.Loop() {
		const rate, seconds = 2000, 60
		engine.Tune()
		seen := must.Get(Measure(b.Context(), "http://"+start(b, "server", "20ms", "10ms").line(), Load{Requests: rate * seconds, Rate: rate, Burstiness: 1, Tokens: 2}))(b)
		if seen.Missing > 0 {
			b.Fatalf("%d tokens are missing; %s", seen.Missing, seen.Example)
		}
		lag := seen.Lag
		tenth := len(lag) / 10
		first, last := stat.New(slices.Clone(lag[:tenth])), stat.New(slices.Clone(lag[9*tenth:]))
		all := stat.New(lag)
		b.Logf("%d requests at %d/s: send lag p50 %.0f us (wanted < 100), p99 %.0f us (wanted < 2000), p99.9 %.0f us, max %.0f us",
			len(all), rate, all.Quantile(.5), all.Quantile(.99), all.Quantile(.999), all.Quantile(1))
		b.Logf("drift: p50 of the first tenth %.0f us, of the last tenth %.0f us", first.Quantile(.5), last.Quantile(.5))
		b.ReportMetric(all.Quantile(.5), "lag-p50-us")
		b.ReportMetric(all.Quantile(.99), "lag-p99-us")
		b.ReportMetric(last.Quantile(.5)-first.Quantile(.5), "drift-us")
		b.ReportMetric(0, "ns/op")
	}
}

// processes are the tested arrival processes.
var processes = []Load{
	{Requests: 600, Rate: 200, Burstiness: 1, Tokens: 1},
	{Requests: 600, Rate: 200, Burstiness: 4, Tokens: 1},
	{Requests: 600, Rate: 200, Burstiness: math.Inf(1), Tokens: 1},
}

func arrivals(t testing.TB, l Load) *Seen {
	t.Helper()
	srv := start(t, "server", "1ms", "1ms")
	seen := must.Get(Measure(t.Context(), "http://"+srv.line(), l))(t)
	srv.stop()
	if len(seen.Arrivals) != l.Requests {
		t.Fatalf("the server saw %d requests of %d; %s", len(seen.Arrivals), l.Requests, seen.Example)
	}
	return seen
}

// In virtual time requests are sent exactly when due, and the server receives
// them at the same time.
func TestSchedule(t *testing.T) {
	for _, l := range processes {
		t.Run(fmt.Sprint("burstiness=", l.Burstiness), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := inMemory(t, sim.Options{TTFT: time.Millisecond, ITL: time.Millisecond}, asIs, l)
				for i, due := range seen.Due {
					if at := seen.Arrivals[i] - seen.Arrivals[0]; seen.Lag[i] != 0 || math.Abs(at-(due-seen.Due[0])) > 1e-6 {
						t.Fatalf("request %d was due after %v s, and came %v s after the first; it was sent %v us late", i, due, at, seen.Lag[i])
					}
				}
				checkSchedule(t, seen)
			})
		})
	}
}

// checkSchedule checks that all requests are present and that their due times
// follow the requested process.
func checkSchedule(t *testing.T, seen *Seen) {
	t.Helper()
	l := seen.Load
	if len(seen.Arrivals) != l.Requests || len(seen.Due) != l.Requests {
		t.Fatalf("the server saw %d requests of %d; %s", len(seen.Arrivals), l.Requests, seen.Example)
	}
	planned := &Seen{Load: l, Arrivals: seen.Due}
	if math.IsInf(l.Burstiness, 1) {
		for i, due := range seen.Due {
			if math.Abs(due-float64(i+1)/l.Rate) > 1e-6 {
				t.Fatalf("request %d is due at %v s", i, due)
			}
		}
	} else if limit := 1.95 / math.Sqrt(float64(l.Requests)); planned.distance() > limit {
		t.Errorf("Kolmogorov-Smirnov distance %.3f of the schedule, above %.3f", planned.distance(), limit)
	}
}

// BenchmarkArrivals compares the gaps of requests received by the server's
// kernel with the requested process.
func BenchmarkArrivals(b *testing.B) {
	for b.Loop() {
		engine.Tune()
		for _, l := range processes {
			seen := arrivals(b, l)
			last := l.Requests - 1
			b.Logf("burstiness %v: %.1f requests/s of %v (wanted: within 5 %%)", l.Burstiness, float64(last)/(seen.Arrivals[last]-seen.Arrivals[0]), l.Rate)
			if !math.IsInf(l.Burstiness, 1) {
				b.Logf("  Kolmogorov-Smirnov distance %.3f (wanted: at most %.3f)", seen.distance(), 1.95/math.Sqrt(float64(l.Requests))+0.03)
				continue
			}
			off := 0
			for _, g := range Gaps(seen.Arrivals)[1:] {
				if math.Abs(g*l.Rate-1) > 0.5 {
					off++
				}
			}
			b.Logf("  %d of %d gaps off by more than half (wanted: at most %d)", off, last, l.Requests/10)
		}
		b.ReportMetric(0, "ns/op")
	}
}
