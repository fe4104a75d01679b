package proof

import (
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/pace"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/sim/step"
	"github.com/tacho-bench/tacho/transport"
)

// engineServer is the role of the simulator with a profile.
func engineServer(args []string) error {
	p, err := step.Load(args[0])
	if err != nil {
		return err
	}
	s, err := sim.New(sim.Options{Profile: &p, Seed: 1, ForgetTruth: true})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go s.Serve(l)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return s.Close()
}

// BenchmarkEngine runs the engine model on both clocks: on the wall clock over
// HTTP, measured by tacho, and in virtual time.
func BenchmarkEngine(b *testing.B) {
	for b.Loop() {
		worst := 0.0
		// TGI does not support ignore_eos, so its answers are short enough to
		// never end early.
		for profile, output := range map[string]int{"vllm-405b-mi300x": 40, "tgi-405b-mi300x": 8} {
			for _, n := range []int{1, 4, 16} {
				worst = max(worst, clocksDiffer(b, profile, n, output))
			}
		}
		b.ReportMetric(100*worst, "worst-%")
		b.ReportMetric(0, "ns/op")
	}
}

func clocksDiffer(b *testing.B, profile string, n, output int) (worst float64) {
	b.Helper()
	engine.Tune()
	p := must.Get(step.Load(profile))(b)
	var arrivals []step.Arrival
	for i := range n {
		arrivals = append(arrivals, step.Arrival{Request: step.Request{ID: uint64(i), Prompt: 4, MaxNew: output, IgnoreEOS: true}})
	}
	traces, _, err := step.Simulate(p, 1, arrivals)
	must.Do(b, err)
	var virtual, wall metric.Accumulator
	for _, t := range traces {
		rec := &tacho.Record{Output: output, Timeline: tacho.NewTimeline(0)}
		rec.Sent, rec.Head = t.Arrival, t.Arrival
		for _, e := range t.Events {
			rec.Events = append(rec.Events, tacho.Event{At: e.At})
			rec.End = e.At
		}
		_ = virtual.Add(rec) // in memory, cannot fail
	}
	srv := start(b, "engine", profile)
	tgi := p.Engine == "tgi"
	recs := drive(b, map[bool]string{true: "tgi", false: "vllm"}[tgi], p.Model, prompts{n, output, tgi}, srv.line(), pace.Burst{Count: n}, n)
	srv.stop()
	for i := range recs {
		_ = wall.Add(&recs[i])
	}
	v, w := virtual.Summary(metric.DefaultConfig()), wall.Summary(metric.DefaultConfig())
	for _, m := range []*metric.Metric{metric.TTFT, metric.TPOT, metric.ITL, metric.E2EL} {
		a, c := v.Classic(m).Mean, w.Classic(m).Mean
		off := math.Abs(c/a - 1)
		b.Logf("%-18s %2d requests: mean %-4s virtual %8.2f ms, wall %8.2f ms (%+.2f %%, wanted: within 2)", profile, n, m.Name, a, c, 100*(c/a-1))
		worst = max(worst, off)
	}
	return worst
}

// prompts is a workload of short prompts with a fixed output length.
type prompts struct {
	count, output int
	text          bool // as text if the protocol does not accept token ids
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

// drive runs a stage of requests with the given protocol.
func drive(b testing.TB, kind, model string, source tacho.Source, addr string, p tacho.Pacer, spares int) records {
	b.Helper()
	tc := must.Get(transport.New(transport.Options{BaseURL: "http://" + addr}))(b)
	defer tc.Close()
	k := must.Get(backend.Find(kind))(b)
	be := must.Get(k.New(backend.Options{Client: tc, Model: model}))(b)
	must.Do(b, tc.Warm(b.Context(), spares, 0))
	var recs records
	must.Do(b, engine.Run(b.Context(), engine.Stage{
		Arrivals: pace.Stripe(p.Arrivals(), 0, 1), Source: source, Backend: be, Precise: true,
	}, &recs))
	for _, r := range recs {
		if !r.OK() {
			b.Fatalf("request %s: %v", r.ID, r.Failure)
		}
	}
	return recs
}
