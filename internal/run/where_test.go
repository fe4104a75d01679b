package run_test

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/sim/step"
	"github.com/tacho-bench/tacho/workload"
)

// profiled returns an engine with constant prefill and decode times.
func profiled(prefillMs, decodeMs float64) *step.Profile {
	flat := func(ms float64) []step.Knot { return []step.Knot{{Tokens: 1, Ms: ms}} }
	return &step.Profile{
		Policy: "chunked", MaxSequences: 64, StepTokens: 100_000, KV: step.KV{BlockTokens: 16}, Output: step.Lengths{Mean: 8, Max: 1000},
		Cost: step.Cost{Step: flat(decodeMs), Prefill: flat(prefillMs), Decode: flat(decodeMs)},
	}
}

// far returns a proxy that adds a delay in each direction. The proxy is a
// process, so that a TCP handshake does not see the delay.
func far(t *testing.T, to string, delay time.Duration) string {
	t.Helper()
	server := must.Get(url.Parse(to))(t)
	l := listener(t, "127.0.0.1")
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			there, err := network.Dial(t.Context(), "tcp", server.Host)
			if err != nil {
				_ = near.Close()
				return
			}
			go later(there, near, delay)
			go later(near, there, delay)
		}
	}()
	return "http://" + l.Addr().String()
}

// later forwards bytes after a delay; bytes received together stay together.
func later(to, from net.Conn, delay time.Duration) {
	type piece struct {
		at time.Time
		b  []byte
	}
	pieces := make(chan piece, 10_000)
	go func() {
		defer to.Close()
		for p := range pieces {
			time.Sleep(time.Until(p.at))
			if _, err := to.Write(p.b); err != nil {
				break
			}
		}
	}()
	defer close(pieces)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			pieces <- piece{time.Now().Add(delay), append([]byte(nil), buf[:n]...)}
		}
		if err != nil {
			return
		}
	}
}

// The report finds the known bottleneck of a server, with and without its
// metrics page, and each reported part equals the server's own record.
func TestBottlenecksAreFound(t *testing.T) {
	for _, c := range []struct {
		name    string
		profile *step.Profile
		engine  string
		change  func(p *step.Profile)
		load    func(p *plan.Plan)
		delay   time.Duration
		want    string
		says    string
	}{
		{
			"queue", profiled(20, 4), "", func(p *step.Profile) { p.MaxSequences = 2 },
			func(p *plan.Plan) { p.NumPrompts = 24; p.RandomOutputLen = workload.Fixed(8) }, 0, "server_queue", "The server's queue is the limit",
		},
		{"prefill", profiled(150, 5), "", nil, func(p *plan.Plan) {
			list(p, "max-concurrency", "1")
			p.NumPrompts, p.RandomOutputLen = 4, workload.Fixed(4)
		}, 0, "prefill", "Prefill is the largest part"},
		{
			"decode", profiled(20, 20), "", nil,
			func(p *plan.Plan) { p.NumPrompts = 8; p.RandomOutputLen = workload.Fixed(30) }, 0, "decode", "Decode is the largest part",
		},
		{
			"front end, tokens", profiled(20, 5), "", func(p *step.Profile) { p.FrontEnd.PerEventMs = 4 },
			func(p *plan.Plan) { p.NumPrompts = 16; p.RandomOutputLen = workload.Fixed(20) }, 0, "front_end", "The server's front end (HTTP and tokenizer) is the limit, not its engine",
		},
		{
			"front end, requests", profiled(20, 5), "", func(p *step.Profile) { p.FrontEnd.PerRequestMs = 30 },
			func(p *plan.Plan) { p.NumPrompts = 20; p.RandomOutputLen = workload.Fixed(4) }, 0, "front_end", "The server's front end (HTTP and tokenizer) is the limit, not its engine",
		},
		{"client", profiled(40, 10), "", nil, func(p *plan.Plan) {
			list(p, "request-rate", "200")
			list(p, "max-concurrency", "2")
			p.NumPrompts, p.RandomOutputLen = 20, workload.Fixed(5)
		}, 0, "client", "The client is the limit: requests wait"},
		{
			"something between", profiled(20, 4), "", nil,
			func(p *plan.Plan) { p.NumPrompts = 8; p.RandomOutputLen = workload.Fixed(8) }, 150 * time.Millisecond,
			"front_end+network", "The path to the engine and back is the limit",
		},
		{
			"a server that tells less", profiled(20, 20), "sglang", nil,
			func(p *plan.Plan) { p.NumPrompts = 8; p.RandomOutputLen = workload.Fixed(30) }, 0, "decode+front_end", "which the server does not separate",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.change != nil {
					c.change(c.profile)
				}
				out, truth := throttled(t, c.profile, c.engine, c.delay, c.load)
				w := out.summaries[0].Where
				if w.Bottleneck != c.want || !strings.Contains(w.Sentence, c.says) || w.Note != "" {
					t.Errorf("%q: %s %s, want %q: %s\n%+v", w.Bottleneck, w.Sentence, w.Note, c.want, c.says, w.All.Parts)
				}
				if c.engine == "" {
					for _, fault := range unlikeTruth(truth, &w.All) {
						t.Error(fault)
					}
				}
			})
		})
	}
}

// throttled measures a server with this bottleneck and also returns the
// server's own records.
func throttled(t *testing.T, profile *step.Profile, engine string, delay time.Duration, load func(*plan.Plan)) (result, []sim.Truth) {
	t.Helper()
	s := must.Get(sim.New(sim.Options{Profile: profile, Model: "tiny", Engine: engine}))(t)
	defer func() { _ = s.Close() }()
	srv := listen(t, s)
	defer srv.Close()
	base := srv.URL
	if delay > 0 {
		base = far(t, srv.URL, delay)
	}
	out := do(t, planFor(base, func(p *plan.Plan) {
		p.MetricsURL, p.IgnoreEOS = []string{srv.URL + "/metrics"}, new(bool)
		*p.IgnoreEOS = true
		load(p)
	}))
	return out, s.Truth()
}

// unlikeTruth compares the parts from a metrics page with the server's own
// records.
func unlikeTruth(all []sim.Truth, split *metric.TimeSplit) (faults []string) {
	want, n := map[string]float64{}, 0.0
	for _, x := range all {
		if len(x.Writes) == 0 {
			continue
		}
		n++
		last := x.Writes[len(x.Writes)-1]
		for part, ns := range map[string]int64{
			"server_queue": x.Admitted - x.Queued, "prefill": x.First - x.Admitted, "decode": x.Last - x.First,
			"front_end": last - x.Arrival - (x.Last - x.Admitted) - (x.Admitted - x.Queued),
		} {
			want[part] += float64(ns) / 1e6
		}
	}
	sum := 0.0
	for _, p := range split.Parts {
		sum += p.Millis
		if told, ok := want[p.Key()]; ok {
			if truth := told / n; p.Millis < truth-1-0.02*split.Millis || p.Millis > truth+1+0.02*split.Millis {
				faults = append(faults, fmt.Sprintf("%s is %.2f ms, and %.2f by the server's own notes", p.Key(), p.Millis, truth))
			}
			delete(want, p.Key())
		}
	}
	if len(want) > 0 || sum < 0.999*split.Millis || sum > 1.001*split.Millis {
		faults = append(faults, fmt.Sprintf("parts of %.2f ms: %.2f, and none of %v", split.Millis, sum, want))
	}
	return faults
}

// A handshake takes one round trip to one server. There is no result for
// several servers.
func TestRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &memnet.Network{Delay: 3 * time.Millisecond}
		env := run.Env{Random: 42, Dial: far.Dial}
		var bases []string
		for range 2 {
			srv := unstarted(t, newSim(t, sim.Options{}))
			srv.Listener = must.Get(far.Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
			srv.Start()
			defer srv.Close()
			bases = append(bases, srv.URL)
		}
		one := executeIn(t.Context(), planFor(bases[0], nil), env)
		if trip := one.summaries[0].Config.RoundTripMillis; trip == nil || *trip != 6 {
			t.Errorf("a round trip of %v ms, want 6", trip)
		}
		two := executeIn(t.Context(), planFor(bases[0], func(p *plan.Plan) { p.BaseURL = bases }), env)
		if trip := two.summaries[0].Config.RoundTripMillis; trip != nil {
			t.Errorf("one round trip of %v ms to two servers", *trip)
		}
	})
}
