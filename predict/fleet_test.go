package predict

import (
	"testing"
	"time"

	"tacho"
)

// Every request to a fleet is answered once, whatever the router, and a fleet of
// one is the server itself.
func TestFleet(t *testing.T) {
	source := talks{sessions: 400, turns: 2, prompt: 600, answer: 40, think: 100 * time.Millisecond}
	stage := Stage{Arrivals: every(5 * time.Millisecond), Source: source, BlockTokens: 16}
	alone := records(t, stage)
	for _, router := range Routers {
		for _, n := range []int{1, 4} {
			fleet, err := NewFleet(profile(t), n, router, 1)
			if err != nil {
				t.Fatal(err)
			}
			stage.Server = fleet
			got := records(t, stage)
			if len(got) != len(alone) {
				t.Fatalf("%s, %d: %d records of %d", router.Name, n, len(got), len(alone))
			}
			if len(fleet.where) != 0 {
				t.Errorf("%s, %d: %d requests stayed", router.Name, n, len(fleet.where))
			}
			for i := range got {
				if n == 1 && (got[i].Session != alone[i].Session || got[i].End != alone[i].End) {
					t.Fatalf("%s: a fleet of one is not the server: session %d at %v for %d at %v", router.Name, got[i].Session, got[i].End, alone[i].Session, alone[i].End)
				}
			}
		}
	}
}

// Replicas share the load, and routers do what they are for: those that look at
// the load queue less than chance, and those that look at the prompt find more of
// it in a cache.
func TestRouters(t *testing.T) {
	wait, cached := map[string]float64{}, map[string]int{}
	for _, router := range Routers {
		fleet, err := NewFleet(profile(t), 8, router, 1)
		if err != nil {
			t.Fatal(err)
		}
		source := talks{sessions: 2400, turns: 1, prompt: 900, answer: 60}
		for _, r := range records(t, Stage{Arrivals: every(5 * time.Millisecond), Source: source, Server: fleet}) {
			wait[router.Name] += (r.First() - r.Sent).Seconds()
		}
		if fleet, err = NewFleet(profile(t), 8, router, 1); err != nil {
			t.Fatal(err)
		}
		source = talks{sessions: 400, turns: 3, prompt: 900, answer: 60, think: time.Second}
		for _, r := range records(t, Stage{Arrivals: every(40 * time.Millisecond), Source: source, Server: fleet, BlockTokens: 16}) {
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
	if _, err := FindRouter("nearest"); err == nil {
		t.Error("a router that is not there was found")
	}
}

// BenchmarkFleet is a million requests of 128 tokens over 64 replicas.
func BenchmarkFleet(b *testing.B) {
	for range b.N {
		p := benchProfile(b)
		fleet, err := NewFleet(p, 64, leastLoaded, 1)
		if err != nil {
			b.Fatal(err)
		}
		var n counter
		source := short{talks{sessions: 1_000_000, turns: 1, answer: 128}}
		if err := Run(b.Context(), Stage{Arrivals: every(time.Millisecond), Source: source, Server: fleet}, &n); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "requests/s")
	}
}

// short is a source that tells how long prompts are, and not what is in them.
type short struct{ talks }

func (s short) Session(i uint64) (tacho.Session, error) {
	out, err := s.talks.Session(i)
	for k := range out.Turns {
		out.Turns[k].Request.InputTokens = 512
	}
	return out, err
}
