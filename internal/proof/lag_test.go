package proof

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"tacho"
	"tacho/engine"
	"tacho/pace"
	"tacho/stat"
)

// BenchmarkLag sends 2,000 requests a second for a minute and looks at how late
// each left, and whether that grew.
func BenchmarkLag(b *testing.B) {
	for b.Loop() {
		const rate, seconds = 2000, 60
		engine.Tune()
		addr := start(b, "server", "20ms", "10ms", "-").line()
		recs := drive(b, addr, tacho.KernelClock, pace.Poisson{Rate: rate, Count: rate * seconds, Seed: 1}, rate*seconds, 2, rate/4)
		slices.SortFunc(recs, func(a, b tacho.Record) int { return int(a.Due - b.Due) })
		lag := make([]float64, len(recs))
		for i, r := range recs {
			lag[i] = float64(r.Sent-r.Due) / 1e3
		}
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
	p, _, err := pace.New(pace.Options{Rate: rate, Shape: shape, Count: count, Seed: 9})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "truth.jsonl")
	srv := start(t, "server", "1ms", "1ms", path)
	recs := drive(t, srv.line(), tacho.KernelClock, p, count, 1, 100)
	srv.stop()
	truth := truths(t, path)
	if len(truth) != count || len(recs) != count {
		t.Fatalf("the server saw %d requests, the client %d, of %d", len(truth), len(recs), count)
	}
	var seen []float64
	for _, r := range truth {
		seen = append(seen, float64(r.Received)/1e9)
	}
	slices.Sort(seen)
	if got := float64(count-1) / (seen[count-1] - seen[0]); math.Abs(got/rate-1) > 0.05 {
		return fmt.Sprintf("rate %.2f/s, want %.2f", got, rate)
	}
	gaps := stat.Gaps(seen)[1:]
	for i := range gaps {
		gaps[i] *= rate
	}
	if !math.IsInf(shape, 1) {
		ks := stat.KolmogorovSmirnov(gaps, func(x float64) float64 { return stat.GammaCDF(shape, x) })
		if limit := 1.95/math.Sqrt(float64(count)) + 0.03; ks > limit {
			return fmt.Sprintf("Kolmogorov-Smirnov distance %.3f, above %.3f", ks, limit)
		}
		return ""
	}
	off := 0
	for _, g := range gaps {
		if math.Abs(g-1) > 0.5 {
			off++
		}
	}
	if off > count/10 {
		return fmt.Sprintf("%d of %d gaps are off by more than half", off, count)
	}
	return ""
}
