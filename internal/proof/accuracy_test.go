package proof

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"sync/atomic"
	"testing"

	"tacho"
	"tacho/backend"
	"tacho/engine"
	"tacho/pace"
	"tacho/sim"
	"tacho/stat"
	"tacho/transport"
)

// prompts is a workload of short prompts with answers of a given length.
type prompts struct {
	count, output int
	text          bool // as words, where the protocol takes no token ids
}

func (p prompts) Session(i uint64) (tacho.Session, error) {
	if p.count > 0 && i >= uint64(p.count) {
		return tacho.Session{}, io.EOF
	}
	in := tacho.Input{IDs: []int32{1001, 1002, 1003, 1004}}
	if p.text {
		in = tacho.Input{Text: "one two three four"}
	}
	return tacho.Session{ID: i, Turns: []tacho.Turn{{Request: tacho.Request{
		ID: fmt.Sprint("p", i), Session: i, Input: in, MaxTokens: p.output, IgnoreEOS: true,
	}}}}, nil
}

type list []tacho.Record

func (l *list) Add(r *tacho.Record) error { *l = append(*l, *r); return nil }
func (l *list) Close() error              { return nil }

// drive runs a stage of count requests against a server.
func drive(b testing.TB, addr string, clock tacho.Clock, p tacho.Pacer, count, output, spares int) list {
	b.Helper()
	return driveAs(b, "vllm", prompts{count: count, output: output}, addr, clock, p, spares)
}

// driveAs does it in a protocol of choice.
func driveAs(b testing.TB, kind string, source tacho.Source, addr string, clock tacho.Clock, p tacho.Pacer, spares int) list {
	b.Helper()
	tc, err := transport.New(transport.Options{BaseURL: "http://" + addr, Clock: clock})
	if err != nil {
		b.Fatal(err)
	}
	defer tc.Close()
	k, err := backend.Find(kind)
	if err != nil {
		b.Fatal(err)
	}
	be, err := k.New(backend.Options{Client: tc, Model: "sim"})
	if err != nil {
		b.Fatal(err)
	}
	if err := tc.Warm(b.Context(), spares, 0); err != nil {
		b.Fatal(err)
	}
	var recs list
	err = engine.Run(b.Context(), engine.Stage{
		Arrivals: pace.Stripe(p.Arrivals(), 0, 1), Source: source, Backend: be, Precise: true,
	}, &recs)
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range recs {
		if !r.OK() {
			b.Fatalf("request %s: %v", r.ID, r.Failure)
		}
	}
	return recs
}

// starve keeps every processor busy, many times over, until stopped.
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

// deviations are |reported - true| of one run, in microseconds.
type deviations struct {
	ttft, itl         stat.Sample
	events, coalesced int
}

// compare holds what was reported against what the server wrote down. Events
// that shared a read with a later one are left out: they are marked.
func compare(recs list, truth map[string]sim.Truth) deviations {
	var ttft, itl []float64
	d := deviations{}
	for i := range recs {
		r := &recs[i]
		t, ok := truth[r.ID]
		d.events += len(r.Events)
		for _, e := range r.Events {
			if e.Coalesced {
				d.coalesced++
			}
		}
		if !ok || len(t.Writes) != len(r.Events) {
			continue
		}
		for k, e := range r.Events {
			switch {
			case e.Coalesced || k > 0 && r.Events[k-1].Coalesced:
			case k == 0:
				ttft = append(ttft, math.Abs(float64(e.At-r.Sent)-float64(t.Writes[0]-t.Received))/1e3)
			default:
				itl = append(itl, math.Abs(float64(e.At-r.Events[k-1].At)-float64(t.Writes[k]-t.Writes[k-1]))/1e3)
			}
		}
	}
	d.ttft, d.itl = stat.New(ttft), stat.New(itl)
	return d
}

// BenchmarkAccuracy runs 2,000 streams of 20 tokens a second, once on each
// clock, and compares the times reported with those the server wrote down.
func BenchmarkAccuracy(b *testing.B) {
	for _, c := range []struct {
		name string
		busy int
		want float64 // how many times better the kernel clock must be
	}{{"idle", 0, 20}, {"starved", 4, 10}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				kernel, read := observe(b, tacho.KernelClock, c.busy), observe(b, tacho.ReadClock, c.busy)
				show(b, "TTFT", kernel.ttft, read.ttft, c.want)
				show(b, "ITL", kernel.itl, read.itl, c.want)
				share := 100 * float64(kernel.coalesced) / float64(kernel.events)
				b.Logf("%d events, coalesced %.3f %% (read clock: %.3f %%)", kernel.events, share, 100*float64(read.coalesced)/float64(read.events))
				b.ReportMetric(share, "coalesced-%")
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

// observe is one run on one clock.
func observe(b *testing.B, clock tacho.Clock, busy int) deviations {
	b.Helper()
	const streams, tokens = 2000, 100
	engine.Tune()
	path := filepath.Join(b.TempDir(), "truth.jsonl")
	srv := start(b, "server", "500ms", "50ms", path)
	addr := srv.line()
	stop := starve(busy)
	recs := drive(b, addr, clock, pace.Constant{Rate: 1000, Count: streams}, streams, tokens, streams)
	stop()
	srv.stop()
	d := compare(recs, truths(b, path))
	if len(d.itl) < d.events/4 {
		b.Fatalf("only %d of %d events could be compared", len(d.itl), d.events)
	}
	return d
}
