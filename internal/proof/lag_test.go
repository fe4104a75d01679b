package proof

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"tacho/engine"
	"tacho/stat"
)

// BenchmarkLag sends 2,000 requests a second for a minute and looks at how late
// each left, and whether that grew.
func BenchmarkLag(b *testing.B) {
	for b.Loop() {
		const rate, seconds = 2000, 60
		engine.Tune()
		seen, err := Measure(b.Context(), "http://"+start(b, "server", "20ms", "10ms").line(), Load{Requests: rate * seconds, Rate: rate, Burstiness: 1, Tokens: 2})
		if err != nil {
			b.Fatal(err)
		}
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

// TestArrivalsAsTheServerSeesThem holds the gaps between requests, as the
// server's kernel received them, against the process that was asked for. A
// client that sent by gaps, dropped the late ones or shared connections fails
// every time; a machine that is busy elsewhere for a second does not.
func TestArrivalsAsTheServerSeesThem(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	for _, c := range []struct {
		rate  float64
		shape float64
	}{{200, 1}, {200, 4}, {200, math.Inf(1)}} {
		t.Run(fmt.Sprintf("rate=%v/burstiness=%v", c.rate, c.shape), func(t *testing.T) {
			var problem string
			for range 3 {
				if problem = arrivalsProblem(t, c.rate, c.shape); problem == "" {
					return
				}
				t.Log(problem)
			}
			t.Error(problem)
		})
	}
}

// arrivalsProblem is what is wrong with the arrivals of three seconds.
func arrivalsProblem(t *testing.T, rate, shape float64) string {
	t.Helper()
	count := int(3 * rate)
	srv := start(t, "server", "1ms", "1ms")
	seen, err := Measure(t.Context(), "http://"+srv.line(), Load{Requests: count, Rate: rate, Burstiness: shape, Tokens: 1})
	if err != nil {
		t.Fatal(err)
	}
	srv.stop()
	if len(seen.Arrivals) != count {
		t.Fatalf("the server saw %d requests of %d; %s", len(seen.Arrivals), count, seen.Example)
	}
	if got := float64(count-1) / (seen.Arrivals[count-1] - seen.Arrivals[0]); math.Abs(got/rate-1) > 0.05 {
		return fmt.Sprintf("rate %.2f/s, want %.2f", got, rate)
	}
	if !math.IsInf(shape, 1) {
		if limit := 1.95/math.Sqrt(float64(count)) + 0.03; seen.Distance() > limit {
			return fmt.Sprintf("Kolmogorov-Smirnov distance %.3f, above %.3f", seen.Distance(), limit)
		}
		return ""
	}
	off := 0
	for _, g := range Gaps(seen.Arrivals)[1:] {
		if math.Abs(g*rate-1) > 0.5 {
			off++
		}
	}
	if off > count/10 {
		return fmt.Sprintf("%d of %d gaps are off by more than half", off, count)
	}
	return ""
}
