package step

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

// serveAll serves arrivals, cancels some of them, and returns when each token was
// generated.
func serveAll(t *testing.T, p Profile, late bool, arrivals []Arrival, giveUp map[uint64]time.Duration) (tokens map[uint64][]time.Duration, all Stats, over time.Duration) {
	t.Helper()
	s := must.Get(NewServer(p, 1))(t)
	now := time.Duration(0)
	out, ended := map[uint64][]time.Duration{}, map[uint64]bool{}
	deliver := func(m *Emission) {
		out[m.ID] = append(out[m.ID], m.Earlier...)
		for range m.Tokens {
			out[m.ID] = append(out[m.ID], m.At)
		}
		if ended[m.ID] = m.Last; m.Last && m.At != now {
			t.Fatalf("the end of request %d at %v was delivered at %v", m.ID, m.At, now)
		}
	}
	if late {
		s.DeferDelivery()
	}
	for {
		at, busy := s.Next()
		if len(arrivals) > 0 && (!busy || arrivals[0].At <= at) {
			at = arrivals[0].At
		}
		for id, when := range giveUp { // before later events
			if when <= at {
				if !ended[id] {
					out[id] = append(out[id], s.Cancel(when, id)...)
				}
				delete(giveUp, id)
			}
		}
		at, busy = s.Next()
		switch {
		case len(arrivals) > 0 && (!busy || arrivals[0].At <= at):
			must.Do(t, s.Add(arrivals[0].At, &arrivals[0].Request))
			arrivals = arrivals[1:]
			continue
		case !busy:
			return out, s.Stats(), now
		}
		now = at
		s.Advance(at, deliver)
	}
}

// Deferred delivery does not change the result: every token has the same time, with
// the same steps and memory, under every policy, even if memory is short and
// requests are cancelled.
func TestDeferDelivery(t *testing.T) {
	base := must.Get(Load("vllm-8b-h100"))(t)
	real := must.Get(Load("vllm-8b-h200"))(t)
	for name, change := range map[string]func(*Profile){
		"as it is":      func(*Profile) {},
		"little memory": func(p *Profile) { p.KV.Blocks = 120 },
		"block of one":  func(p *Profile) { p.KV.BlockTokens, p.KV.Blocks = 1, 4000 },
		"small steps":   func(p *Profile) { p.StepTokens, p.MaxSequences = 24, 64 },
		"prefill first": func(p *Profile) { p.Policy, p.KV.Blocks = "prefill-first", 300 },
		"reserve":       func(p *Profile) { p.Policy, p.KV.Blocks, p.Reserve.WaitSteps = "reserve", 300, 5 },
		"two in flight": func(p *Profile) {
			p.Host = Host{StepsInFlight: 2, LaunchMs: 1, EagerMs: 9, TailMs: 1}
			p.KV.Blocks = 300
		},
		"long contexts": func(p *Profile) { p.Cost.LongContextTokens, p.Cost.LongContextMs = 260, 3 },
		"drafts":        func(p *Profile) { p.Speculation = Speculation{DraftTokens: 2, Acceptance: 0.5} },
		"priorities":    func(p *Profile) { p.Priority, p.KV.Blocks = true, 300 },
		"adapters":      func(p *Profile) { p.LoRA = LoRA{Slots: 1, LoadMs: 20} },
		"pipeline":      func(p *Profile) { p.Parallel = Parallel{Pipeline: 3, HopMs: 1}; p.KV.Blocks = 300 },
		"two ranks":     func(p *Profile) { p.Parallel = Parallel{Data: 2}; p.KV.Blocks = 150 },
		"lock step":     func(p *Profile) { p.Parallel = Parallel{Data: 2, LockStep: true, Tensor: 2}; p.KV.Blocks = 150 },
		"split": func(p *Profile) {
			p.KV.BytesPerToken, p.KV.Blocks = 131072, 200
			p.Split = Split{Prefill: 2, Decode: 2, GBPerS: 1, LatencyMs: 3}
		},
		"a second memory": func(p *Profile) {
			p.KV.BytesPerToken, p.KV.Blocks = 131072, 300
			p.Offload = Offload{Blocks: 200, GBPerS: 20}
		},
		"an API process": func(p *Profile) {
			p.FrontEnd, p.API = FrontEnd{}, API{RequestMs: 1, StepMs: 0.1, TokenUs: 10, EventUs: 20}
		},
		"a real one": func(p *Profile) { *p = real },
		"a slow one": func(p *Profile) { *p, p.API.EventUs = real, 400 },
	} {
		p := base
		change(&p)
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 7))
				var arrivals []Arrival
				giveUp := [2]map[uint64]time.Duration{{}, {}}
				at := time.Duration(0)
				for i := range uint64(300) {
					at += time.Duration(rng.ExpFloat64() * float64(15*time.Millisecond))
					r := Request{ID: i, Prompt: 100 + rng.IntN(100), MaxNew: 1 + rng.IntN(90), IgnoreEOS: i%3 > 0, Priority: int(i % 4), Adapter: []string{"", "a", "b"}[i%3]}
					for k := range uint64(12) { // other requests share the first blocks
						r.Blocks = append(r.Blocks, 1000*(i%5)+k+1)
						if k >= 4 {
							r.Blocks[k] = 1000*(i+10) + k
						}
					}
					arrivals = append(arrivals, Arrival{At: at, Request: r})
					if i%7 == 0 {
						for k := range giveUp {
							giveUp[k][i] = at + time.Duration(i)*time.Millisecond
						}
					}
				}
				want, stats, over := serveAll(t, p, false, slices.Clone(arrivals), giveUp[0])
				got, lateStats, lateOver := serveAll(t, p, true, slices.Clone(arrivals), giveUp[1])
				for id := range want {
					if !slices.Equal(got[id], want[id]) {
						t.Fatalf("request %d: tokens at %v, with deferred delivery at %v", id, want[id], got[id])
					}
				}
				if over != lateOver {
					t.Errorf("finished at %v, with deferred delivery at %v", over, lateOver)
				}
				if stats != lateStats {
					t.Errorf("stats %+v, with deferred delivery %+v", stats, lateStats)
				}
				if stats.Preemptions == 0 && name == "little memory" {
					t.Error("no preemptions: the memory is too large for this test")
				}
				if stats.Running+stats.Waiting != 0 || stats.Finished+stats.Cancelled != int64(len(arrivals)) || stats.KVUsedBlocks != 0 {
					t.Errorf("at the end: %+v", lateStats)
				}
			})
		}
	}
}

// A request cancelled at the time of its last token counts as cancelled.
func TestCancelAtLastToken(t *testing.T) {
	p := must.Get(Load("vllm-8b-h100"))(t)
	p.Cost.Noise = 0
	arrivals := []Arrival{{Request: Request{ID: 1, Prompt: 100, MaxNew: 40, IgnoreEOS: true}}, {Request: Request{ID: 2, Prompt: 100, MaxNew: 60, IgnoreEOS: true}}}
	all, _, _ := serveAll(t, p, false, slices.Clone(arrivals), nil)
	for _, late := range []bool{false, true} {
		got, stats, _ := serveAll(t, p, late, slices.Clone(arrivals), map[uint64]time.Duration{1: all[1][39]})
		if len(got[1]) != 39 || len(got[2]) != 60 || stats.Cancelled != 1 || stats.Finished != 1 {
			t.Errorf("deferred delivery %v: %d tokens of 39, and %d of 60: %+v", late, len(got[1]), len(got[2]), stats)
		}
	}
}
