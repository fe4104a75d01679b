package run_test

import (
	"net"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"tacho/metric"
	"tacho/plan"
	"tacho/sim"
	"tacho/sim/step"
	"tacho/workload"
)

// profiled is an engine that prefills a prompt in one time and makes a token in
// another, whatever else it does.
func profiled(prefillMs, decodeMs float64) *step.Profile {
	flat := func(ms float64) []step.Knot { return []step.Knot{{Tokens: 1, Ms: ms}} }
	return &step.Profile{
		Policy: "chunked", MaxSequences: 64, StepTokens: 100_000, KV: step.KV{BlockTokens: 16}, Output: step.Lengths{Mean: 8, Max: 1000},
		Cost: step.Cost{Step: flat(decodeMs), Prefill: flat(prefillMs), Decode: flat(decodeMs)},
	}
}

// far is a way to a server that takes so long in each direction. It goes through
// a process, so that a handshake does not see it.
func far(t *testing.T, to string, delay time.Duration) string {
	t.Helper()
	server, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			var d net.Dialer
			there, err := d.DialContext(t.Context(), "tcp", server.Host)
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

// later hands on what comes, so much later; what comes together stays together.
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

// What limits a server is known here, for it was made so. The report has to find
// it, from the outside and from the server's page alone, and each part it tells
// must be what the server itself noted of the requests.
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
			func(p *plan.Plan) { p.NumPrompts = 16; p.RandomOutputLen = workload.Fixed(20) }, 0, "front_end", "The server's front end is the limit, not its engine",
		},
		{
			"front end, requests", profiled(20, 5), "", func(p *step.Profile) { p.FrontEnd.PerRequestMs = 30 },
			func(p *plan.Plan) { p.NumPrompts = 20; p.RandomOutputLen = workload.Fixed(4) }, 0, "front_end", "The server's front end is the limit, not its engine",
		},
		{"client", profiled(40, 10), "", nil, func(p *plan.Plan) {
			list(p, "request-rate", "200")
			list(p, "max-concurrency", "2")
			p.NumPrompts, p.RandomOutputLen = 20, workload.Fixed(5)
		}, 0, "client", "The client is the limit: requests wait"},
		{
			"something between", profiled(20, 4), "", nil,
			func(p *plan.Plan) { p.NumPrompts = 8; p.RandomOutputLen = workload.Fixed(8) }, 150 * time.Millisecond,
			"front_end+network", "The way to the engine and back is the limit",
		},
		{
			"a server that tells less", profiled(20, 20), "sglang", nil,
			func(p *plan.Plan) { p.NumPrompts = 8; p.RandomOutputLen = workload.Fixed(30) }, 0, "decode+front_end", "the server does not say which",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.change != nil {
				c.change(c.profile)
			}
			s, err := sim.New(sim.Options{Profile: c.profile, Model: "tiny", Engine: c.engine})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			srv := httptest.NewServer(s)
			t.Cleanup(srv.Close)
			base := srv.URL
			if c.delay > 0 {
				base = far(t, srv.URL, c.delay)
			}
			out := do(t, planFor(base, func(p *plan.Plan) {
				p.MetricsURL, p.IgnoreEOS = []string{srv.URL + "/metrics"}, new(bool)
				*p.IgnoreEOS = true
				c.load(p)
			}))
			w := out.summaries[0].Where
			if w.Bottleneck != c.want || !strings.Contains(w.Sentence, c.says) || w.Note != "" {
				t.Errorf("%q: %s %s, want %q: %s\n%+v", w.Bottleneck, w.Sentence, w.Note, c.want, c.says, w.All.Parts)
			}
			if c.engine == "" {
				sameAsTruth(t, s.Truth(), &w.All)
			}
		})
	}
}

// sameAsTruth holds the parts that a page tells against what the server noted.
func sameAsTruth(t *testing.T, all []sim.Truth, split *metric.TimeSplit) {
	t.Helper()
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
				t.Errorf("%s is %.2f ms, and %.2f by the server's own notes", p.Key(), p.Millis, truth)
			}
			delete(want, p.Key())
		}
	}
	if len(want) > 0 || sum < 0.999*split.Millis || sum > 1.001*split.Millis {
		t.Errorf("parts of %.2f ms: %.2f, and none of %v", split.Millis, sum, want)
	}
}

// A handshake knows the way to one server, and to nothing between.
func TestRoundTrip(t *testing.T) {
	base, _ := serve(t, nil)
	trip := do(t, planFor(base, nil)).summaries[0].Config.RoundTripMillis
	if trip == nil || *trip <= 0 || *trip > 1000 {
		t.Errorf("a round trip of %v ms on loopback", trip)
	}
	other, _ := serve(t, nil)
	two := do(t, planFor(base, func(p *plan.Plan) { p.BaseURL = append(p.BaseURL, other) }))
	if trip := two.summaries[0].Config.RoundTripMillis; trip != nil {
		t.Errorf("one round trip of %v ms to two servers", *trip)
	}
}
