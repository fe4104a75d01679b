package proof

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"tacho"
	"tacho/backend"
	"tacho/engine"
	"tacho/pace"
	"tacho/stat"
	"tacho/transport"
)

// prompts is a workload of short prompts with answers of a given length.
type prompts struct{ count, output int }

func (p prompts) Session(i uint64) (tacho.Session, error) {
	if p.count > 0 && i >= uint64(p.count) {
		return tacho.Session{}, io.EOF
	}
	return tacho.Session{ID: i, Turns: []tacho.Turn{{Request: tacho.Request{
		ID: fmt.Sprint("p", i), Session: i, Input: tacho.Input{IDs: []int32{1001, 1002, 1003, 1004}}, MaxTokens: p.output, IgnoreEOS: true,
	}}}}, nil
}

type list []tacho.Record

func (l *list) Add(r *tacho.Record) error { *l = append(*l, *r); return nil }
func (l *list) Close() error              { return nil }

// drive runs a stage of count requests against a server.
func drive(b testing.TB, addr string, p tacho.Pacer, count, output, spares int) list {
	b.Helper()
	tc, err := transport.New(transport.Options{BaseURL: "http://" + addr})
	if err != nil {
		b.Fatal(err)
	}
	defer tc.Close()
	k, err := backend.Find("vllm")
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
		Arrivals: pace.Stripe(p.Arrivals(), 0, 1), Source: prompts{count, output}, Backend: be, Precise: true,
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

// errors of one clock, in microseconds.
type clockErrors struct{ ttft, itl stat.Sample }

// compare holds what a clock reported against what the server wrote down.
// Events that shared a read with a later one are left out: they are marked.
func compare(recs list, truth map[string]truthOf, at func(tacho.Event) time.Duration) clockErrors {
	var ttft, itl []float64
	for i := range recs {
		r := &recs[i]
		t, ok := truth[r.ID]
		if !ok || len(t.Writes) != len(r.Events) {
			continue
		}
		for k, e := range r.Events {
			switch {
			case e.Coalesced || k > 0 && r.Events[k-1].Coalesced:
			case k == 0:
				ttft = append(ttft, math.Abs(float64(at(e)-r.Sent)-float64(t.Writes[0]-t.Received))/1e3)
			default:
				itl = append(itl, math.Abs(float64(at(e)-at(r.Events[k-1]))-float64(t.Writes[k]-t.Writes[k-1]))/1e3)
			}
		}
	}
	return clockErrors{stat.New(ttft), stat.New(itl)}
}

type truthOf struct {
	Received int64
	Writes   []int64
}

// BenchmarkAccuracy runs 2,000 streams of 20 tokens a second and compares the
// times reported, on both clocks, with those the server wrote down.
func BenchmarkAccuracy(b *testing.B) {
	for _, c := range []struct {
		name string
		busy int
		want float64 // how many times better the kernel clock must be
	}{{"idle", 0, 20}, {"starved", 4, 10}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				accuracy(b, c.busy, c.want)
			}
		})
	}
}

func accuracy(b *testing.B, busy int, want float64) {
	const streams, tokens = 2000, 100
	engine.Tune()
	path := filepath.Join(b.TempDir(), "truth.jsonl")
	srv := start(b, "server", "500ms", "50ms", path)
	addr := srv.line()
	stop := starve(busy)
	recs := drive(b, addr, pace.Constant{Rate: 1000, Count: streams}, streams, tokens, streams)
	stop()
	srv.stop()
	truth := map[string]truthOf{}
	for id, t := range truths(b, path) {
		truth[id] = truthOf{t.Received, t.Writes}
	}
	kernel := compare(recs, truth, func(e tacho.Event) time.Duration { return e.At })
	read := compare(recs, truth, func(e tacho.Event) time.Duration { return e.At + time.Duration(e.ReadLag) })
	events, coalesced := 0, 0
	for _, r := range recs {
		events += len(r.Events)
		for _, e := range r.Events {
			if e.Coalesced {
				coalesced++
			}
		}
	}
	if len(kernel.itl) < events/4 {
		b.Fatalf("only %d of %d events could be compared", len(kernel.itl), events)
	}
	for _, m := range []struct {
		name         string
		kernel, read stat.Sample
	}{{"TTFT", kernel.ttft, read.ttft}, {"ITL", kernel.itl, read.itl}} {
		k, r := m.kernel.Quantile(.99), m.read.Quantile(.99)
		b.Logf("%-4s |reported - true|: kernel clock p50 %6.1f us, p99 %8.1f us; read clock p50 %8.1f us, p99 %9.1f us; ratio at p99 %.0f (wanted %.0f); n %d",
			m.name, m.kernel.Quantile(.5), k, m.read.Quantile(.5), r, r/k, want, len(m.kernel))
		b.ReportMetric(k, m.name+"-kernel-p99-us")
		b.ReportMetric(r, m.name+"-read-p99-us")
	}
	b.Logf("events %d, coalesced %d (%.3f %%)", events, coalesced, 100*float64(coalesced)/float64(events))
	b.ReportMetric(100*float64(coalesced)/float64(events), "coalesced-%")
	b.ReportMetric(0, "ns/op")
}
