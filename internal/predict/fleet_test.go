package predict

import (
	"slices"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/route"
	"github.com/tacho-bench/tacho/sim/step"
)

func fleetOf(t testing.TB, n int, policy route.Policy) *Fleet {
	t.Helper()
	return must.Get(NewFleet(FleetPlan{Profile: benchProfile(t), Replicas: n, Policy: policy, Seed: 1}))(t)
}

// With every router, each request to a fleet is answered once, or cancelled at its timeout. A fleet of one
// behaves like a single server, although it delivers tokens late and samples read its state.
func TestFleet(t *testing.T) {
	source := talks{sessions: 400, turns: 2, prompt: 600, answer: 40, think: 100 * time.Millisecond}
	of := FleetPlan{Profile: benchProfile(t), Seed: 1}
	for _, timeout := range []time.Duration{0, 250 * time.Millisecond} {
		single := must.Get(step.NewServer(of.Profile, of.Seed))(t)
		stage := Stage{Arrivals: every(50 * time.Millisecond), Source: source, BlockTokens: 16, Timeout: timeout, Server: single}
		alone := records(t, stage)
		for _, router := range route.Policies {
			for _, n := range []int{1, 4} {
				of.Replicas, of.Policy = n, router
				fleet := must.Get(NewFleet(of))(t)
				stage.Server, stage.ByPrefix = fleet, router.ByPrefix
				stage.SampleEvery, stage.Sample = 30*time.Millisecond, func(time.Duration) time.Duration { fleet.Stats(); return 30 * time.Millisecond }
				got := records(t, stage)
				if len(got) != len(alone) {
					t.Fatalf("%s, %d: %d records of %d", router.Name, n, len(got), len(alone))
				}
				if len(fleet.inFlight) != 0 {
					t.Errorf("%s, %d: %d requests stayed", router.Name, n, len(fleet.inFlight))
				}
				for i := range got {
					if n == 1 && (got[i].Session != alone[i].Session || got[i].End != alone[i].End || !slices.Equal(got[i].Events, alone[i].Events)) {
						t.Fatalf("%s: a fleet of one is not the server: session %d at %v with %d events for %d at %v with %d",
							router.Name, got[i].Session, got[i].End, len(got[i].Events), alone[i].Session, alone[i].End, len(alone[i].Events))
					}
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

// BenchmarkFleet runs a million requests of 128 tokens on 64 replicas.
func BenchmarkFleet(b *testing.B) {
	for range b.N {
		least := must.Get(route.Find("least-loaded"))(b)
		fleet := fleetOf(b, 64, least)
		var n counter
		source := short{talks{sessions: 1_000_000, turns: 1, answer: 128}}
		must.Do(b, Run(b.Context(), Stage{Arrivals: every(time.Millisecond), Source: source, Server: fleet}, &n))
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
