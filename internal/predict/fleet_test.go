package predict

import (
	"slices"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/route"
)

func fleetOf(t testing.TB, n int, policy route.Policy, changes ...func(*FleetPlan)) *Fleet {
	t.Helper()
	p := FleetPlan{Engines: []Engine{{benchProfile(t), n}}, Policy: policy, Seed: 1}
	for _, change := range changes {
		change(&p)
	}
	fleet, err := NewFleet(p)
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

// With every router, each request to a fleet is answered once. A fleet of one
// behaves like a single server.
func TestFleet(t *testing.T) {
	source := talks{sessions: 400, turns: 2, prompt: 600, answer: 40, think: 100 * time.Millisecond}
	stage := Stage{Arrivals: every(5 * time.Millisecond), Source: source, BlockTokens: 16}
	alone := records(t, stage)
	for _, router := range route.Policies {
		for _, n := range []int{1, 4} {
			fleet := fleetOf(t, n, router)
			stage.Server, stage.ByPrefix = fleet, router.ByPrefix
			got := records(t, stage)
			if len(got) != len(alone) {
				t.Fatalf("%s, %d: %d records of %d", router.Name, n, len(got), len(alone))
			}
			if len(fleet.inFlight) != 0 {
				t.Errorf("%s, %d: %d requests stayed", router.Name, n, len(fleet.inFlight))
			}
			for i := range got {
				if n == 1 && (got[i].Session != alone[i].Session || got[i].End != alone[i].End) {
					t.Fatalf("%s: a fleet of one is not the server: session %d at %v for %d at %v", router.Name, got[i].Session, got[i].End, alone[i].Session, alone[i].End)
				}
			}
		}
	}
}

// Replicas share the load. Load-aware routers queue less than random choice, and
// prefix-aware routers have more cache hits.
func TestRouters(t *testing.T) {
	wait, cached := map[string]float64{}, map[string]int{}
	for _, router := range route.Policies {
		fleet := fleetOf(t, 8, router)
		source := talks{sessions: 2400, turns: 1, prompt: 900, answer: 60}
		for _, r := range records(t, Stage{Arrivals: every(4 * time.Millisecond), Source: source, Server: fleet}) {
			wait[router.Name] += (r.First() - r.Sent).Seconds()
		}
		fleet = fleetOf(t, 8, router)
		source = talks{sessions: 400, turns: 3, prompt: 900, answer: 60, think: time.Second}
		for _, r := range records(t, Stage{Arrivals: every(40 * time.Millisecond), Source: source, Server: fleet, BlockTokens: 16, ByPrefix: router.ByPrefix}) {
			cached[router.Name] += r.Usage.Cached
		}
	}
	for _, better := range []string{"least-loaded", "power-of-two"} {
		if wait[better] >= wait["random"] {
			t.Errorf("%s: %.1f s to the first tokens, at random %.1f s", better, wait[better], wait["random"])
		}
	}
	for _, better := range []string{"prefix", "sticky"} {
		if cached[better] < 2*cached["random"] {
			t.Errorf("%s: %d tokens from the cache, at random %d", better, cached[better], cached["random"])
		}
	}
}

// Engines of two kinds share the load, and each keeps its own speed.
func TestMixedEngines(t *testing.T) {
	slow := benchProfile(t)
	slow.Cost.Step = slices.Clone(slow.Cost.Step)
	for i := range slow.Cost.Step {
		slow.Cost.Step[i].Ms *= 3
	}
	fleet := fleetOf(t, 2, route.Policies[0], func(p *FleetPlan) { p.Engines = append(p.Engines, Engine{slow, 1}) })
	took := map[string]time.Duration{}
	source := talks{sessions: 300, turns: 1, prompt: 100, answer: 30}
	for _, r := range records(t, Stage{Arrivals: every(100 * time.Millisecond), Source: source, Server: fleet, Replica: fleet.Replica}) {
		took[r.Endpoint] += r.End - r.Sent
	}
	if fast, slow := took["replica-0"], took["replica-2"]; slow < 5*fast/2 {
		t.Errorf("requests took %v at the fast engine and %v at the slow one", fast, slow)
	}
	slow.KV.BlockTokens = 32
	if _, err := NewFleet(FleetPlan{Engines: []Engine{{benchProfile(t), 1}, {slow, 1}}, Policy: route.Policies[0]}); err == nil {
		t.Error("engines that cut prompts differently were put together")
	}
}

// An autoscaled fleet grows to the required size within its limit, after the start
// delay, and shrinks again. No request is lost.
func TestAutoscaling(t *testing.T) {
	load := func(yield func(uint64, time.Duration) bool) { // high load for two minutes, then low load
		at := time.Duration(0)
		for i := range uint64(1 << 20) {
			at += 25 * time.Millisecond
			if at > 2*time.Minute {
				at += time.Second
			}
			if !yield(i, at) {
				return
			}
		}
	}
	for _, signal := range signals {
		fleet := fleetOf(t, 1, route.Policies[2], func(p *FleetPlan) {
			p.Engines[0].Profile.MaxSequences = 16
			p.Scaling = Scaling{Most: 6, By: signal, Delay: 30 * time.Second, DownAfter: time.Minute}
			if signal.Name == "in-flight" {
				p.Scaling.Target = 16
			}
		})
		source := talks{sessions: 5200, turns: 1, prompt: 300, answer: 100}
		var early, late []float64
		for _, r := range records(t, Stage{Arrivals: load, Source: source, Server: fleet, Replica: fleet.Replica}) {
			if !r.OK() {
				t.Fatalf("%s: %v", signal.Name, r.Failure)
			}
			if r.Sent < 30*time.Second && r.Endpoint != "replica-0" {
				t.Fatalf("%s: at %v a request went to %s, which takes 30 s to start", signal.Name, r.Sent, r.Endpoint)
			}
			switch ttft := (r.First() - r.Sent).Seconds(); {
			case r.Sent > 20*time.Second && r.Sent < 30*time.Second:
				early = append(early, ttft)
			case r.Sent > 110*time.Second && r.Sent < 120*time.Second:
				late = append(late, ttft)
			}
		}
		u := fleet.Use()
		if u.Least != 1 || u.Most < 2 || u.Most > 6 || u.Stopped == 0 || u.Mean() < 1 || u.Mean() > float64(u.Most) {
			t.Errorf("%s: %+v, %.2f on average", signal.Name, u, u.Mean())
		}
		if fleet.present != 1 {
			t.Errorf("%s: %d replicas are left at the end", signal.Name, fleet.present)
		}
		slices.Sort(early)
		slices.Sort(late)
		if late[len(late)/2] > early[len(early)/2]/4 {
			t.Errorf("%s: the first token took %.2f s before replicas came and %.2f s after", signal.Name, early[len(early)/2], late[len(late)/2])
		}
	}
}

// Requests in flight at a failing replica are lost, or retried if allowed and no
// token was sent. The other replicas continue, and the failed one returns.
func TestFailures(t *testing.T) {
	source := talks{sessions: 1000, turns: 1, prompt: 900, answer: 100}
	run := func(retries int, failures Failures) (failed, again int, served map[string]int, u Use) {
		fleet := fleetOf(t, 2, route.Policies[0], func(p *FleetPlan) { p.Failures = failures })
		served = map[string]int{}
		all := records(t, Stage{Arrivals: every(20 * time.Millisecond), Source: source, Server: fleet, Replica: fleet.Replica, Retries: retries})
		if len(all) != source.sessions {
			t.Fatalf("%d records of %d", len(all), source.sessions)
		}
		for _, r := range all {
			if !r.OK() {
				failed++
				if r.Failure.Cause != tacho.Reset && r.Failure.Status != 503 {
					t.Fatal(r.Failure)
				}
				continue
			}
			if r.Attempts > 1 {
				again++
			}
			if r.Sent > 10*time.Second && r.Sent < 15*time.Second {
				served[r.Endpoint]++
			}
		}
		return failed, again, served, fleet.Use()
	}
	once := Failures{At: []time.Duration{5 * time.Second}, Repair: 6 * time.Second}
	failed, again, served, u := run(0, once)
	if failed == 0 || failed != u.LostRequests || again != 0 || u.Failed != 1 {
		t.Errorf("%d failed, %d were sent again: %+v", failed, again, u)
	}
	if served["replica-0"] == 0 || served["replica-0"] >= served["replica-1"] {
		t.Errorf("after the failure of replica-0, which came back at 11 s, there served %v", served)
	}
	fewer, again, _, _ := run(5, once)
	if again == 0 || fewer+again != failed {
		t.Errorf("with retries %d failed and %d were sent again; without %d failed", fewer, again, failed)
	}
	both := Failures{At: []time.Duration{5 * time.Second, 5 * time.Second}, Repair: time.Second}
	all, _, _, _ := run(0, both)
	none, _, _, _ := run(8, Failures{At: []time.Duration{0, 0}, Repair: time.Second})
	if all < failed+40 || none != 0 {
		t.Errorf("with no replica for a second %d failed; with retries from the start on %d", all, none)
	}
	if _, _, _, u := run(0, Failures{Between: 5 * time.Second, Repair: time.Second}); u.Failed < 3 {
		t.Errorf("in 20 s, with a failure every 5 s at each of two: %+v", u)
	}
}

// BenchmarkFleet runs a million requests of 128 tokens on 64 replicas.
func BenchmarkFleet(b *testing.B) {
	for range b.N {
		least, err := route.Find("least-loaded")
		if err != nil {
			b.Fatal(err)
		}
		fleet := fleetOf(b, 64, least)
		var n counter
		source := short{talks{sessions: 1_000_000, turns: 1, answer: 128}}
		if err := Run(b.Context(), Stage{Arrivals: every(time.Millisecond), Source: source, Server: fleet}, &n); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "requests/s")
	}
}

// short is a source with prompt lengths but no prompt contents.
type short struct{ talks }

func (s short) Session(i uint64) (tacho.Session, error) {
	out, err := s.talks.Session(i)
	for k := range out.Turns {
		out.Turns[k].Request.InputTokens = 512
	}
	return out, err
}
