package proof

import (
	"errors"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/pace"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/stat"
)

const ms = time.Millisecond

// story returns a request of three tokens, sent at 10 ms, with correct times.
// The server's clock has another origin.
func story() (tacho.Record, sim.Truth) {
	r := tacho.Record{ID: "a", Timeline: tacho.NewTimeline(9 * ms)}
	r.Sent, r.Clock = 10*ms, tacho.KernelClock
	r.Events = tacho.Events{{At: 110 * ms}, {At: 160 * ms}, {At: 210 * ms}}
	zero := int64(5e18)
	at := func(d time.Duration) int64 { return zero + int64(d) }
	return r, sim.Truth{ID: "a", Received: at(10 * ms), Writes: []int64{at(110 * ms), at(160 * ms), at(210 * ms)}}
}

func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(*tacho.Record, *sim.Truth)
		ttft, itl stat.Sample // microseconds
		missing   int
	}{
		"true":           {func(*tacho.Record, *sim.Truth) {}, stat.Sample{0}, stat.Sample{0, 0}, 0},
		"late first":     {func(r *tacho.Record, _ *sim.Truth) { r.Events[0].At += 5 * ms }, stat.Sample{5000}, stat.Sample{0, 5000}, 0},
		"early last":     {func(r *tacho.Record, _ *sim.Truth) { r.Events[2].At -= ms }, stat.Sample{0}, stat.Sample{0, 1000}, 0},
		"coalesced":      {func(r *tacho.Record, _ *sim.Truth) { r.Events[1].At, r.Events[1].Slack = 210*ms, 200 }, stat.Sample{0}, stat.Sample{50000, 50000}, 0},
		"no kernel time": {func(_ *tacho.Record, s *sim.Truth) { s.Arrival, s.Received = s.Received+int64(ms), 0 }, stat.Sample{1000}, stat.Sample{0, 0}, 0},
		"token lost":     {func(r *tacho.Record, _ *sim.Truth) { r.Events = r.Events[:2] }, stat.Sample{}, stat.Sample{}, 3},
		"unknown":        {func(_ *tacho.Record, s *sim.Truth) { s.ID = "b" }, stat.Sample{}, stat.Sample{}, 3},
		"failed":         {func(r *tacho.Record, _ *sim.Truth) { r.Failure = &tacho.Failure{Cause: tacho.Reset} }, stat.Sample{}, stat.Sample{}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			r, truth := story()
			c.change(&r, &truth)
			s := compare(records{r}, map[string]sim.Truth{truth.ID: truth}, Load{Requests: 1, Tokens: 3})
			if !slices.Equal(s.TTFT, c.ttft) || !slices.Equal(s.ITL, c.itl) || s.Missing != c.missing {
				t.Errorf("TTFT off by %v us, ITL by %v us, %d missing; want %v, %v, %d", s.TTFT, s.ITL, s.Missing, c.ttft, c.itl, c.missing)
			}
		})
	}
}

// perfect returns the results of a client without any error.
func perfect(l Load) *Seen {
	s := &Seen{Load: l, Stamped: tacho.KernelClock, TTFT: make(stat.Sample, l.Requests), ITL: make(stat.Sample, l.Requests*(l.Tokens-1)), Lag: make([]float64, l.Requests), CPU: 10}
	for at := range (pace.Poisson{Rate: l.Rate, Count: l.Requests, Seed: 1}).Arrivals() {
		s.Arrivals = append(s.Arrivals, at.Seconds())
	}
	s.Summary.Config.Client = &metric.Client{}
	return s
}

// Every rule fails for its own fault, and no other rule does.
func TestEveryRuleFindsItsFault(t *testing.T) {
	fill := func(s []float64, from int, v float64) {
		for i := from; i < len(s); i++ {
			s[i] = v
		}
	}
	faults := map[string]func(streams, open *Seen){
		"missing_tokens": func(streams, _ *Seen) { streams.Missing = 1 },
		"ttft_error_p50": func(streams, open *Seen) { fill(streams.TTFT, 0, 300); fill(open.TTFT, 0, 300) },
		"ttft_error_p99": func(streams, _ *Seen) { fill(streams.TTFT, 0, 5000) },
		"itl_error_p50":  func(streams, _ *Seen) { fill(streams.ITL, 0, 300) },
		"itl_error_p99":  func(streams, _ *Seen) { fill(streams.ITL, len(streams.ITL)*97/100, 5000) },
		"send_lag_p50":   func(_, open *Seen) { fill(open.Lag, 0, 700) },
		"send_lag_p99":   func(_, open *Seen) { fill(open.Lag, len(open.Lag)*97/100, 7000) },
		"arrivals_distance": func(_, open *Seen) { // 30 % of requests in pairs; the count per window hardly changes
			for i := 1; i < len(open.Arrivals); i += 3 {
				open.Arrivals[i] = open.Arrivals[i-1]
			}
		},
		"arrivals_dispersion": func(_, open *Seen) { // the client sometimes pauses and then sends everything due
			for i, at := range open.Arrivals {
				if phase := math.Mod(at, 0.4); phase < 0.06 {
					open.Arrivals[i] += 0.06 - phase
				}
			}
		},
		"cpu_per_token": func(streams, _ *Seen) { streams.CPU = 1000 },
	}
	if r := judge(perfect(Full.Streams), perfect(Full.Open)); !r.OK || len(r.Machine) > 0 {
		t.Fatalf("without a fault: %+v", r)
	}
	for _, rule := range rules {
		fault := faults[rule.Name]
		if fault == nil {
			t.Errorf("%s: no fault is known that it finds", rule.Name)
			continue
		}
		streams, open := perfect(Full.Streams), perfect(Full.Open)
		fault(streams, open)
		r := judge(streams, open)
		var failed []string
		for _, c := range r.Checks {
			if !c.OK {
				failed = append(failed, c.Name)
			}
			if c.OK != (c.Do == "") {
				t.Errorf("%s: ok %v, and what to do is %q", c.Name, c.OK, c.Do)
			}
		}
		if r.OK || !slices.Contains(failed, rule.Name) {
			t.Errorf("%s: its fault was not found; %v failed", rule.Name, failed)
		}
		if strict := rule.Name != "arrivals_dispersion"; strict && len(failed) > 1 {
			t.Errorf("%s: its fault failed %v", rule.Name, failed)
		}
	}
}

// Without observations, all checks fail.
func TestNothingSeenIsNoProof(t *testing.T) {
	for _, c := range judge(&Seen{Load: Full.Streams, Missing: 1}, &Seen{Load: Full.Open}).Checks {
		if c.OK {
			t.Errorf("%s holds of nothing: %+v", c.Name, c)
		}
	}
}

// A busy machine is reported, independent of the checks.
func TestBusyMachineIsNamed(t *testing.T) {
	streams, open := perfect(Full.Streams), perfect(Full.Open)
	open.Summary.Config.Client.Pauses.LongestMillis = 60
	if r := judge(streams, open); !r.OK || len(r.Machine) != 1 || !strings.Contains(r.Text, "not scheduled for up to 60 ms") {
		t.Errorf("by its heartbeat: %+v", r)
	}
	streams.Summary.Verdict.Reasons = []metric.Reason{{Code: "client-steal", Text: "stolen"}, {Code: "prefix-cache", Text: "cached"}}
	if r := judge(streams, open); !slices.Equal(r.Machine, []string{"stolen"}) {
		t.Errorf("by its verdict: %+v", r)
	}
}

// liar is a listener whose connections delay every second write, so that the
// server's records are wrong.
type liar struct {
	net.Listener
	by time.Duration
}

func (l liar) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &lyingConn{Conn: c, by: l.by}, err
}

type lyingConn struct {
	net.Conn
	by     time.Duration
	writes int
}

func (c *lyingConn) Write(b []byte) (int, error) {
	if c.writes++; c.writes%2 == 0 { // the first write is the head of the answer
		time.Sleep(c.by)
	}
	return c.Conn.Write(b)
}

// asIs is a listener without faults.
func asIs(l net.Listener) net.Listener { return l }

// serveInMemory serves a simulated engine on an in-memory network in a synctest
// bubble.
func serveInMemory(t *testing.T, o sim.Options, listen func(net.Listener) net.Listener) (network *memnet.Network, url string) {
	t.Helper()
	network = new(memnet.Network)
	l := must.Get(network.Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	s := must.Get(sim.New(o))(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listen(l)) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return network, "http://" + l.Addr().String()
}

// inMemory measures a load in virtual time.
func inMemory(t *testing.T, o sim.Options, listen func(net.Listener) net.Listener, l Load) *Seen {
	t.Helper()
	network, url := serveInMemory(t, o, listen)
	return must.Get(measureOver(t.Context(), network.Dial, url, l))(t)
}

const lie = 5 * ms

// liedTo is a small effort against a server with wrong records.
var (
	liedTo = Effort{Streams: fewTokens, Open: fewTokens}

	fewTokens = Load{Requests: 20, Rate: 100, Burstiness: math.Inf(1), Tokens: 10}
	liesAfter = sim.Options{TTFT: 20 * ms, ITL: 20 * ms}
)

// In virtual time a client is exact, so a server with a 5 ms error is reported
// with exactly 5 ms.
func TestLieIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, url := serveInMemory(t, liesAfter, func(l net.Listener) net.Listener { return liar{l, lie} })
		r := must.Get(runOver(t.Context(), network.Dial, url, liedTo))(t)
		checkLie(t, r)
		for _, c := range r.Checks {
			if strings.Contains(c.Name, "_error_") && *c.Value != micros(lie) {
				t.Errorf("%s: a lie of 5 ms was seen as %v us", c.Name, *c.Value)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		seen := inMemory(t, liesAfter, asIs, fewTokens)
		if seen.TTFT.Max() != 0 || seen.ITL.Max() != 0 || seen.Missing != 0 {
			t.Errorf("a server that tells the truth is off by %v us and %v us; %d tokens are missing", seen.TTFT.Max(), seen.ITL.Max(), seen.Missing)
		}
	})
}

// checkLie checks that the error is detected and that no tokens are missing.
func checkLie(t *testing.T, r *Result) {
	t.Helper()
	for _, c := range r.Checks {
		switch c.Name {
		case "missing_tokens":
			if !c.OK {
				t.Errorf("tokens are missing: %+v; %s", c, r.Failure)
			}
		case "ttft_error_p50":
			if c.OK || *c.Value < micros(lie) {
				t.Errorf("%s: a lie of 5 ms was seen as %v us", c.Name, *c.Value)
			}
		case "itl_error_p99":
			if c.OK {
				t.Errorf("%s: a lie of 5 ms was seen as %v us", c.Name, *c.Value)
			}
		}
	}
	if r.OK || r.Tokens != fewTokens.Requests*fewTokens.Tokens {
		t.Errorf("ok %v, %d tokens compared", r.OK, r.Tokens)
	}
}
