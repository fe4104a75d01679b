package step

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

// randomServer adds the processes around an engine to a profile.
func randomServer(rng *rand.Rand, p Profile) Profile {
	ms := func(most float64) float64 { return float64(rng.IntN(3)) / 2 * most * rng.Float64() }
	p.FrontEnd = FrontEnd{}
	p.API = API{
		LatencyMs: ms(1), RequestMs: ms(1), RequestPerTokenUs: ms(1), Turns: rng.IntN(8), SubmitMs: ms(1), HandOverMs: ms(1),
		StepMs: ms(1), TokenUs: ms(30), PieceTokens: rng.IntN(20), EventUs: ms(100), EndMs: ms(1), CloseMs: 0.01 + ms(1),
	}
	p.Host = Host{
		StepsInFlight: rng.IntN(3), LaunchMs: ms(2), GraphMs: ms(10), GraphTokens: rng.IntN(600), EagerMs: ms(20), PerSequenceUs: ms(10),
		PerNewMs: ms(1), TailMs: ms(3), UpdateMs: ms(1), PerArrivalMs: ms(1), PerArrivalTokenUs: ms(1), Noise: ms(0.3),
	}
	return p
}

// With random costs of the surrounding processes, every request gets the same
// tokens as from the engine alone, in order of time, and no token before its
// arrival.
func TestServerLosesNothing(t *testing.T) {
	merged := 0
	for trial := range uint64(200) {
		rng := rand.New(rand.NewPCG(trial, 11))
		bare := randomProfile(rng)
		p := randomServer(rng, bare)
		must.Do(t, p.Validate())
		arrivals := randomArrivals(rng, p, 40)
		got, stats, err := Simulate(p, trial, arrivals)
		must.Do(t, err)
		if stats.Running != 0 || stats.Waiting != 0 || stats.KVUsedBlocks != 0 {
			t.Fatalf("trial %d: at the end %+v", trial, stats)
		}
		want, _, err := Simulate(bare, trial, arrivals)
		must.Do(t, err)
		for i := range got {
			tokens, before := 0, arrivals[i].At
			for _, e := range got[i].Events {
				if e.At < before {
					t.Fatalf("trial %d, request %d: an event at %v after one at %v", trial, i, e.At, before)
				}
				tokens, before = tokens+e.Tokens, e.At
			}
			whole := 0
			for _, e := range want[i].Events {
				whole += e.Tokens
			}
			if tokens != whole || got[i].Finish != want[i].Finish {
				t.Fatalf("trial %d, request %d: %d tokens and %q, want %d and %q", trial, i, tokens, got[i].Finish, whole, want[i].Finish)
			}
			merged += len(want[i].Events) - len(got[i].Events)
		}
	}
	if merged == 0 {
		t.Error("no tokens shared an event in any trial")
	}
}

// Two steps in flight hide the host's work behind the GPU's: the slower of them
// limits decoding. With one step at a time the two add up.
func TestStepsInFlight(t *testing.T) {
	for _, tt := range []struct {
		inFlight int
		launch   float64
		want     time.Duration // per token
	}{{1, 2, 12 * time.Millisecond}, {2, 2, 10 * time.Millisecond}, {2, 25, 25 * time.Millisecond}} {
		p := plain("chunked")
		p.Cost = Cost{Step: []Knot{{1, 10}}}
		p.Host = Host{StepsInFlight: tt.inFlight, LaunchMs: tt.launch, GraphMs: tt.launch, EagerMs: tt.launch}
		got, _, err := Simulate(p, 1, []Arrival{{Request: Request{ID: 1, Prompt: 4, MaxNew: 101, IgnoreEOS: true}}})
		must.Do(t, err)
		events := got[0].Events
		if gap := (events[90].At - events[40].At) / 50; gap != tt.want {
			t.Errorf("%d in flight, %v ms to launch: a token every %v, want %v", tt.inFlight, tt.launch, gap, tt.want)
		}
	}
}

// An API process slower than the engine limits the sum of all streams. It merges
// tokens of an answer only if no other task runs between its outputs.
func TestAPIProcessLimitsThroughput(t *testing.T) {
	for _, tt := range []struct {
		streams, piece int
		merges         bool
	}{{64, 128, true}, {256, 128, false}} {
		p := plain("chunked")
		p.MaxSequences, p.StepTokens, p.KV = 512, 8192, KV{BlockTokens: 16}
		p.Cost = Cost{Step: []Knot{{1, 1}}}
		p.API = API{TokenUs: 10, EventUs: 90, PieceTokens: tt.piece}
		var arrivals []Arrival
		for i := range tt.streams {
			arrivals = append(arrivals, Arrival{Request: Request{ID: uint64(i), Prompt: 4, MaxNew: 200, IgnoreEOS: true}})
		}
		got, _, err := Simulate(p, 1, arrivals)
		must.Do(t, err)
		events, tokens := 0, 0
		for _, g := range got {
			events += len(g.Events)
			tokens += 200
		}
		if merges := events < tokens*9/10; merges != tt.merges {
			t.Errorf("%d streams: %d tokens in %d events", tt.streams, tokens, events)
		}
	}
}

// A request cancelled in the API process gets no more emissions and is removed.
func TestCancelInAPI(t *testing.T) {
	for _, after := range []time.Duration{0, 300 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond} {
		p := plain("chunked")
		p.Cost = Cost{Step: []Knot{{1, 1}}}
		p.API = API{RequestMs: 1, Turns: 4, SubmitMs: 0.5, EventUs: 100, EndMs: 0.1}
		p.Host = Host{StepsInFlight: 2, LaunchMs: 0.2}
		s := must.Get(NewServer(p, 1))(t)
		for id := range uint64(3) {
			must.Do(t, s.Add(0, &Request{ID: id, Prompt: 4, MaxNew: 30, IgnoreEOS: true}))
		}
		tokens, cancelled := map[uint64]int{}, false
		for at, ok := s.Next(); ok; at, ok = s.Next() {
			if at >= after && !cancelled {
				s.Cancel(at, 1)
				cancelled = true
			}
			s.Advance(at, func(e *Emission) {
				if e.ID == 1 && cancelled {
					t.Errorf("after %v: emission at %v", after, e.At)
				}
				tokens[e.ID] += e.Tokens
			})
		}
		if stats := s.Stats(); tokens[0] != 30 || tokens[2] != 30 || stats.Running+stats.Waiting+stats.KVUsedBlocks != 0 {
			t.Errorf("after %v: %v, %+v", after, tokens, stats)
		}
	}
}
