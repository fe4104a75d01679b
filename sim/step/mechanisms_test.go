package step

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

// times returns the delivery times of tokens in milliseconds.
func times(story []Emission) (out []float64) {
	for _, m := range story {
		out = append(out, m.At.Seconds()*1e3)
	}
	return out
}

func wantTimes(t *testing.T, what string, story []Emission, want ...float64) {
	t.Helper()
	got := times(story)
	if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-3 }) {
		t.Errorf("%s: tokens at %v ms, want %v", what, got, want)
	}
}

func exactly(id uint64, prompt, output int) Request {
	return Request{ID: id, Prompt: prompt, MaxNew: output, IgnoreEOS: true}
}

func TestLengthHistogram(t *testing.T) {
	l := Lengths{Kind: "histogram", Min: 3, Max: 100, Histogram: []LengthBin{{To: 4, Share: 2}, {To: 10, Share: 0}, {To: 100, Share: 6}}}
	must.Do(t, l.validate())
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 100_000
	short, sum := 0, 0
	for range n {
		switch x := l.draw(0, rng); {
		case x == 3 || x == 4:
			short++
		case x < 11 || x > 100:
			t.Fatalf("drew %d, which has no share", x)
		default:
			sum += x
		}
	}
	if share := float64(short) / n; math.Abs(share-0.25) > 0.01 {
		t.Errorf("%v are short, want a quarter", share)
	}
	if mean := float64(sum) / float64(n-short); math.Abs(mean-55.5) > 0.5 {
		t.Errorf("the long ones have a mean of %v, want 55.5", mean)
	}
}

// A draft model costs time for each proposed token and for each sequence.
func TestDraftCost(t *testing.T) {
	p := plain("chunked")
	p.Speculation = Speculation{DraftTokens: 2, DraftMs: 3, DraftPerSequenceUs: 500}
	got, _ := drive(t, p, 1, []Arrival{{Request: exactly(1, 4, 5)}})
	// A prompt of 4 takes 4 ms. A decode computes three tokens and two drafts of
	// 3.5 ms. The last two decodes have one draft and none.
	wantTimes(t, "what was drafted", got[1], 4, 14, 24, 33, 41)
}

// Four GPUs divide the duration of a step by four and add the all-reduce.
func TestTensorParallel(t *testing.T) {
	p := plain("chunked")
	p.Parallel = Parallel{Tensor: 4, AllReduceMs: 0.5, AllReducePerTokenUs: 10}
	got, _ := drive(t, p, 1, []Arrival{{Request: exactly(1, 40, 3)}})
	wantTimes(t, "a request", got[1], 10+0.5+0.4, 10.9+0.25+0.51, 10.9+2*(0.25+0.51))
}

// Loading an adapter makes its step longer, and each distinct adapter makes every
// step longer.
func TestAdapterCost(t *testing.T) {
	p := plain("chunked")
	p.LoRA = LoRA{Slots: 2, LoadMs: 100, PerAdapterUs: 250}
	requests := []Request{exactly(1, 4, 3), exactly(2, 4, 3), exactly(3, 4, 3)}
	requests[0].Adapter, requests[1].Adapter, requests[2].Adapter = "a", "b", "b"
	var arrivals []Arrival
	for _, r := range requests {
		arrivals = append(arrivals, Arrival{Request: r})
	}
	again := exactly(4, 4, 1)
	again.Adapter = "b" // still loaded
	arrivals = append(arrivals, Arrival{At: time.Second, Request: again})
	got, _ := drive(t, p, 1, arrivals)
	wantTimes(t, "the first", got[1], 12+200+0.5, 212.5+3.5, 212.5+7)
	wantTimes(t, "the later one", got[4], 1000+4+0.25)
}

// With one adapter slot, requests for another adapter wait until the first is
// unused. Later requests without an adapter do not wait.
func TestAdaptersWaitForRoom(t *testing.T) {
	p := plain("chunked")
	p.LoRA = LoRA{Slots: 1, LoadMs: 1}
	a, b, none := exactly(1, 4, 5), exactly(2, 4, 2), exactly(3, 4, 2)
	a.Adapter, b.Adapter = "a", "b"
	got, _ := drive(t, p, 1, []Arrival{{Request: a}, {Request: b}, {Request: none}})
	last := got[1][4].At
	if admitted := got[2][0].Admitted; admitted != last {
		t.Errorf("b was admitted at %v, a finished at %v", admitted, last)
	}
	if got[3][0].Admitted != 0 {
		t.Errorf("the request without an adapter was admitted at %v", got[3][0].Admitted)
	}
}

// The lowest priority number runs first, regardless of arrival. The highest is
// preempted, even if it was admitted first.
func TestPriority(t *testing.T) {
	p := plain("chunked")
	p.Priority, p.MaxSequences = true, 1
	var arrivals []Arrival
	for i, priority := range []int{5, 7, 5, 1} {
		r := exactly(uint64(i), 4, 2)
		r.Priority = priority
		arrivals = append(arrivals, Arrival{At: time.Duration(i), Request: r})
	}
	got, _ := drive(t, p, 1, arrivals)
	for i, want := range []float64{0, 15, 10, 5} { // 4 ms for a prompt and 1 ms for the second token
		if at := got[uint64(i)][0].Admitted.Seconds() * 1e3; math.Abs(at-want) > 1e-3 {
			t.Errorf("request %d was admitted at %v ms, want %v", i, at, want)
		}
	}

	p.MaxSequences, p.KV.Blocks = 8, 5
	low, high := exactly(1, 8, 8), exactly(2, 8, 8)
	low.Priority = 9
	got, stats := drive(t, p, 1, []Arrival{{Request: low}, {Request: high}})
	if stats.Preemptions == 0 || got[2][7].Preemptions != 0 || got[1][7].Preemptions == 0 {
		t.Errorf("%d preemptions, %d of the request with the highest priority", stats.Preemptions, got[2][7].Preemptions)
	}
}

// Preempted blocks return over the link and are not recomputed.
func TestSwapInsteadOfRecompute(t *testing.T) {
	p := plain("chunked")
	p.KV.Blocks, p.KV.BytesPerToken = 5, 1_000_000
	p.Offload = Offload{Blocks: 8, GBPerS: 1} // a token takes a millisecond
	arrivals := []Arrival{{Request: exactly(1, 8, 8)}, {Request: exactly(2, 8, 8)}}
	got, stats := drive(t, p, 1, arrivals)
	if stats.PromptTokens != 16 || stats.Preemptions != 1 {
		t.Errorf("%d prompt tokens were computed and %d requests preempted, want 16 and 1", stats.PromptTokens, stats.Preemptions)
	}
	// Prompts take 16 tokens. Request 2, which has 9 tokens, is swapped out while
	// request 1 generates its second token. After request 1 ends, request 2 is
	// swapped in and continues.
	wantTimes(t, "the first", got[1], 16, 16+1+9, 27, 28, 29, 30, 31, 32)
	wantTimes(t, "the second", got[2], 16, 32+1+9, 43, 44, 45, 46, 47, 48)
}

// Blocks evicted from the prefix cache are found in the offload memory.
func TestPrefixFromSecondMemory(t *testing.T) {
	blocks := func(family uint64) (out []uint64) {
		for i := range uint64(4) {
			out = append(out, family<<32|i)
		}
		return out
	}
	p := plain("chunked")
	p.KV = KV{BlockTokens: 4, Blocks: 5, PrefixCache: true, BytesPerToken: 1_000_000}
	serve := func() []Emission {
		var arrivals []Arrival
		for i, family := range []uint64{1, 2, 1} {
			r := exactly(uint64(i), 17, 1)
			r.Blocks = blocks(family)
			arrivals = append(arrivals, Arrival{At: time.Duration(i) * time.Second, Request: r})
		}
		got, _ := drive(t, p, 1, arrivals)
		return got[2]
	}
	without := serve()
	p.Offload = Offload{Blocks: 100, GBPerS: 10}
	with := serve()
	if without[0].Cached != 0 || with[0].Cached != 16 {
		t.Fatalf("%d and %d tokens were cached, want none and 16", without[0].Cached, with[0].Cached)
	}
	wantTimes(t, "without", without, 2000+17)
	wantTimes(t, "with", with, 2000+1+1.6)
}

// simulate serves simultaneous requests.
func simulate(t *testing.T, p Profile, requests ...Request) (out [][]float64) {
	t.Helper()
	var arrivals []Arrival
	for _, r := range requests {
		arrivals = append(arrivals, Arrival{Request: r})
	}
	traces, stats, err := Simulate(p, 1, arrivals)
	must.Do(t, err)
	if stats.Running+stats.Waiting+stats.KVUsedBlocks != 0 || stats.Finished != int64(len(requests)) {
		t.Errorf("at the end: %+v", stats)
	}
	for _, trace := range traces {
		var at []float64
		for _, e := range trace.Events {
			at = append(at, e.At.Seconds()*1e3)
		}
		out = append(out, at)
	}
	return out
}

func TestSeveralEngines(t *testing.T) {
	// In the first two cases a step takes one millisecond per token.
	short, long := exactly(1, 4, 3), exactly(2, 10, 3)
	for name, tt := range map[string]struct {
		change func(p *Profile)
		want   [][]float64
	}{
		"one":       {func(*Profile) {}, [][]float64{{14, 16, 18}, {14, 16, 18}}},
		"two ranks": {func(p *Profile) { p.Parallel.Data = 2 }, [][]float64{{4, 5, 6}, {10, 11, 12}}},
		"lock step": {func(p *Profile) { p.Parallel = Parallel{Data: 2, LockStep: true} }, [][]float64{{10, 11, 12}, {10, 11, 12}}},
		// A step of 10 ms has two stages of 5 ms and a hop between them. Steps have
		// 4 tokens: the short prompt runs from 0 to 11 ms, the long prompt from 5
		// to 16 ms, with a decode from 11 to 22 ms and from 16 to 27 ms.
		"pipeline": {func(p *Profile) {
			p.Parallel, p.Cost, p.StepTokens = Parallel{Pipeline: 2, HopMs: 1}, Cost{Step: []Knot{{1, 10}}}, 4
			p.KV.BlockTokens = 16
		}, [][]float64{{11, 22, 33}, {27, 38, 49}}},
		// Prompts of 14 tokens are prefilled in one step. Their transfers are
		// sequential and take one millisecond per token plus 2 ms.
		"split": {func(p *Profile) {
			p.KV.BytesPerToken, p.Split = 1_000_000, Split{Prefill: 1, Decode: 1, GBPerS: 1, LatencyMs: 2}
		}, [][]float64{{20, 21, 22}, {30, 31, 32}}},
		"split, two that write": {func(p *Profile) {
			p.KV.BytesPerToken, p.Split = 1_000_000, Split{Prefill: 2, Decode: 2, GBPerS: 1, LatencyMs: 2}
		}, [][]float64{{4 + 4 + 2, 11, 12}, {10 + 10 + 2, 23, 24}}},
	} {
		p := plain("chunked")
		tt.change(&p)
		if got := simulate(t, p, short, long); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: tokens at %v ms, want %v", name, got, tt.want)
		}
	}
}

// A request cancelled during its transfer between engines is removed.
func TestCancelInTransfer(t *testing.T) {
	p := plain("chunked")
	p.KV.BytesPerToken, p.Split = 1_000_000, Split{Prefill: 1, Decode: 1, GBPerS: 1}
	s := must.Get(NewServer(p, 1))(t)
	r := exactly(1, 10, 3)
	must.Do(t, s.Add(0, &r))
	for at, ok := s.Next(); ok; at, ok = s.Next() {
		s.Advance(at, func(m *Emission) { t.Errorf("%+v", m) })
		if at == 10*time.Millisecond { // prefilled; the transfer takes another 10 ms
			s.Cancel(at, 1)
		}
	}
	if stats := s.Stats(); stats.Running+stats.Waiting+stats.KVUsedBlocks != 0 || stats.Cancelled != 1 {
		t.Errorf("at the end: %+v", stats)
	}
}

func TestMechanismsAreValidated(t *testing.T) {
	for want, change := range map[string]func(p *Profile){
		"histogram is empty": func(p *Profile) { p.Output = Lengths{Kind: "histogram", Max: 9} },
		"histogram[1].to: 5 must be above 5": func(p *Profile) {
			p.Output = Lengths{Kind: "histogram", Max: 9, Histogram: []LengthBin{{5, 1}, {5, 1}}}
		},
		"histogram[0].to: 12 must be above 0": func(p *Profile) { p.Output = Lengths{Kind: "histogram", Max: 9, Histogram: []LengthBin{{12, 1}}} },
		"all shares are 0":                    func(p *Profile) { p.Output = Lengths{Kind: "histogram", Max: 9, Histogram: []LengthBin{{5, 0}}} },
		"only allowed with kind":              func(p *Profile) { p.Output.Histogram = []LengthBin{{5, 1}} },
		"lora.slots: set the number":          func(p *Profile) { p.LoRA.LoadMs = 3 },
		"lora.load_ms: -1":                    func(p *Profile) { p.LoRA = LoRA{Slots: 1, LoadMs: -1} },
		"offload: set":                        func(p *Profile) { p.Offload.Blocks = 10 },
		"offload: kv.blocks is 0":             func(p *Profile) { p.Offload = Offload{10, 10}; p.KV.BytesPerToken = 8 },
		"parallel.tensor: set the number":     func(p *Profile) { p.Parallel.AllReduceMs = 1 },
		"parallel.pipeline: set the number":   func(p *Profile) { p.Parallel.HopMs = 1 },
		"parallel.data: set the number":       func(p *Profile) { p.Parallel.LockStep = true },
		"parallel.data: 5000":                 func(p *Profile) { p.Parallel.Data = 5000 },
		"split: set":                          func(p *Profile) { p.Split.Prefill = 1 },
		"split and parallel.data":             func(p *Profile) { p.Split = Split{1, 1, 1, 1}; p.KV.BytesPerToken = 1; p.Parallel.Data = 2 },
		"speculation.draft_ms: -2":            func(p *Profile) { p.Speculation.DraftMs = -2 },
	} {
		p := plain("chunked")
		change(&p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
}
