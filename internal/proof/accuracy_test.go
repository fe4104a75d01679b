package proof

import (
	"math"
	"sync/atomic"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/stat"
)

// starve keeps every processor busy with n loops until stopped.
func starve(n int) (stop func()) {
	var over atomic.Bool
	for range n {
		go func() {
			x := 1.0
			for !over.Load() {
				for range 1000 {
					x = x*1.0000001 + 1e-9
				}
			}
			_ = x
		}()
	}
	return func() { over.Store(true) }
}

// BenchmarkAccuracy runs 2,000 streams of 20 tokens per second, once per clock,
// and compares the reported times with the server's own.
func BenchmarkAccuracy(b *testing.B) {
	for _, c := range []struct {
		name string
		busy int
		want float64 // required improvement by the kernel clock, as a factor
	}{{"idle", 0, 20}, {"starved", 4, 10}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				kernel, read, best := observe(b, "kernel", c.busy), observe(b, "read", c.busy), observe(b, "auto", c.busy)
				show(b, "TTFT", kernel.TTFT, read.TTFT, c.want)
				show(b, "ITL", kernel.ITL, read.ITL, c.want)
				if best.Stamped == tacho.WireClock {
					showWire(b, "TTFT", best.TTFT)
					showWire(b, "ITL", best.ITL)
					b.Logf("wire clock: %d of %d times fell back", best.Summary.Clock.FellBack, best.Summary.Clock.WireTimes)
				} else {
					b.Log("no wire clock: it needs CAP_NET_RAW")
				}
				share := func(s *Seen) float64 { return 100 * float64(s.Coalesced) / float64(s.Requests*s.Tokens) }
				b.Logf("%d events, all of them compared; coalesced %.3f %% (read clock: %.3f %%)", kernel.Requests*kernel.Tokens, share(kernel), share(read))
				b.ReportMetric(share(kernel), "coalesced-%")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

func show(b *testing.B, name string, kernel, read stat.Sample, want float64) {
	b.Helper()
	k, r := kernel.Quantile(.99), read.Quantile(.99)
	b.Logf("%-4s |reported - true|: kernel clock p50 %6.1f us, p99 %7.1f us (wanted: < 100 when idle); read clock p50 %7.1f us, p99 %8.1f us; %.0f times better at p99 (wanted: %.0f); n %d",
		name, kernel.Quantile(.5), k, read.Quantile(.5), r, r/k, want, len(kernel))
	b.ReportMetric(k, name+"-kernel-p99-us")
	b.ReportMetric(r, name+"-read-p99-us")
}

func showWire(b *testing.B, name string, wire stat.Sample) {
	b.Helper()
	b.Logf("%-4s |reported - true|: wire clock   p50 %6.1f us, p99 %7.1f us (wanted: < 100, idle or not)", name, wire.Quantile(.5), wire.Quantile(.99))
	b.ReportMetric(wire.Quantile(.99), name+"-wire-p99-us")
}

// observe runs the load once on one clock.
func observe(b *testing.B, clock string, busy int) *Seen {
	b.Helper()
	engine.Tune()
	srv := start(b, "server", "500ms", "50ms")
	addr := srv.line()
	stop := starve(busy)
	defer stop()
	s := must.Get(Measure(b.Context(), "http://"+addr, Load{Requests: 2000, Rate: 1000, Burstiness: math.Inf(1), Tokens: 100, Clock: clock}))(b)
	srv.stop()
	if s.Missing > 0 {
		b.Fatalf("%d tokens are missing; %s", s.Missing, s.Example)
	}
	return s
}
