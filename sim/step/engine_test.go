package step

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

// plain returns a profile in which a step takes one millisecond per token.
func plain(policy string) Profile {
	return Profile{
		Policy: policy, MaxSequences: 8, StepTokens: 64,
		KV:     KV{BlockTokens: 4},
		Output: Lengths{Mean: 5, Max: 20},
		Cost:   Cost{Step: []Knot{{1, 1}, {2, 2}}},
	}
}

// checkInvariants fails the test if the engine violates an invariant.
func (e *Engine) checkInvariants(t *testing.T) {
	t.Helper()
	private, holders := 0, map[int32]int32{}
	for _, s := range e.running {
		private += s.blocks.private
		for _, p := range s.blocks.shared {
			at := p.extent
			for n := int(p.n); n > 0; at = e.kv.shared.extents[at].tail {
				holders[at]++
				n -= len(e.kv.shared.extents[at].hashes)
			}
		}
	}
	idle, all := 0, 0
	for _, at := range e.kv.shared.buckets {
		if at == 0 {
			continue
		}
		b := e.kv.shared.extents[at]
		if found := e.kv.shared.first(b.hashes[0]).extent; found != at || b.holders != holders[at] {
			t.Fatalf("blocks %x have %d holders, count %d, and are found: %v", b.hashes, holders[at], b.holders, found == at)
		}
		if all += len(b.hashes); b.holders == 0 {
			idle += len(b.hashes)
		}
	}
	if all != e.kv.shared.n {
		t.Fatalf("KV counts %d shared blocks, there are %d", e.kv.shared.n, all)
	}
	if private != e.kv.private || idle != e.kv.idle {
		t.Fatalf("KV counts %d private and %d idle blocks, there are %d and %d", e.kv.private, e.kv.idle, private, idle)
	}
	if all := e.kv.private + e.kv.shared.n; all > e.kv.total {
		t.Fatalf("KV holds %d of %d blocks", all, e.kv.total)
	}
	stats := e.Stats()
	if stats.KVUsedBlocks < 0 || (stats.KVBlocks > 0 && stats.KVUsedBlocks > stats.KVBlocks) {
		t.Fatalf("KV use %d of %d", stats.KVUsedBlocks, stats.KVBlocks)
	}
	if stats.Running != len(e.running) || stats.Running > e.p.MaxSequences {
		t.Fatalf("running %d, stats say %d, limit %d", len(e.running), stats.Running, e.p.MaxSequences)
	}
	if stats.Running+stats.Waiting < len(e.live) {
		t.Fatalf("%d running and %d waiting, %d alive", stats.Running, stats.Waiting, len(e.live))
	}
	if e.policy.Name == "chunked" && e.load.prefill+e.load.decode > e.p.StepTokens {
		t.Fatalf("a step of %d tokens, the budget is %d", e.load.prefill+e.load.decode, e.p.StepTokens)
	}
	for _, s := range e.running {
		if s.decoding && s.work > 0 && e.kv.blocksFor(s.Prompt+s.emitted) > s.blocks.blocks() && slices.Contains(e.planned, s) {
			t.Fatalf("request %d decodes with %d blocks for %d tokens", s.ID, s.blocks.blocks(), s.Prompt+s.emitted)
		}
	}
}

// drive runs arrivals, sorted by time, to the end and checks invariants after each
// step.
func drive(t *testing.T, p Profile, seed uint64, arrivals []Arrival) (map[uint64][]Emission, Stats) {
	t.Helper()
	e := must.Get(New(p, seed))(t)
	got := map[uint64][]Emission{}
	var now time.Duration
	for steps := 0; ; steps++ {
		if steps > 1_000_000 {
			t.Fatal("no end after a million steps")
		}
		for len(arrivals) > 0 && arrivals[0].At <= now {
			must.Do(t, e.Add(arrivals[0].At, &arrivals[0].Request))
			arrivals = arrivals[1:]
		}
		end, ok := e.Next(now)
		if !ok {
			if len(arrivals) == 0 {
				return got, e.Stats()
			}
			now = arrivals[0].At
			continue
		}
		if end <= now {
			t.Fatalf("a step from %v to %v", now, end)
		}
		e.checkInvariants(t)
		e.Finish(func(m Emission) { got[m.ID] = append(got[m.ID], m) })
		e.checkInvariants(t)
		now = end
	}
}

// randomProfile returns a random profile with space for requests of up to 60
// tokens.
func randomProfile(rng *rand.Rand) Profile {
	p := plain(policies[rng.IntN(len(policies))].Name)
	p.MaxSequences = 1 + rng.IntN(12)
	p.StepTokens = 1 + rng.IntN(80)
	p.KV.BlockTokens = 1 + rng.IntN(8)
	if rng.IntN(4) > 0 {
		p.KV.Blocks = (60+p.KV.BlockTokens-1)/p.KV.BlockTokens + rng.IntN(40)
		p.KV.Watermark = 0.2 * rng.Float64()
	}
	p.KV.PrefixCache = rng.IntN(2) == 0
	p.Reserve = Reserve{WaitSteps: rng.IntN(5), WaitingRatio: rng.Float64()}
	if rng.IntN(2) == 0 {
		p.Speculation = Speculation{DraftTokens: rng.IntN(4), Acceptance: rng.Float64()}
	}
	p.Output = Lengths{Kind: lengthKinds[rng.IntN(len(lengthKinds))].Name, Mean: 8, SD: 6, Min: 1, Max: 20}
	if p.Output.Kind == histogram {
		p.Output.Histogram = []LengthBin{{To: 4, Share: 1}, {To: 20, Share: 3}}
	}
	p.FrontEnd = FrontEnd{FixedMs: 3 * rng.Float64(), PerRequestMs: rng.Float64(), HoldsBurst: rng.IntN(2) == 0}
	p.Cost.Noise = 0.1 * rng.Float64()
	return p
}

// randomArrivals have prompts of up to 40 and outputs of up to 20 tokens. Many of
// them share prefixes.
func randomArrivals(rng *rand.Rand, p Profile, n int) []Arrival {
	arrivals := make([]Arrival, n)
	var at time.Duration
	for i := range arrivals {
		if rng.IntN(3) == 0 {
			at += time.Duration(rng.IntN(50)) * time.Millisecond
		}
		r := Request{ID: uint64(i), Prompt: 1 + rng.IntN(40), MaxNew: 1 + rng.IntN(20)}
		switch rng.IntN(3) {
		case 0:
			r.IgnoreEOS = true
		case 1:
			r.Output = 1 + rng.IntN(25)
		}
		family := rng.Uint64N(3)
		for b := range uint64(r.Prompt / p.KV.BlockTokens) {
			r.Blocks = append(r.Blocks, family<<32|b)
		}
		arrivals[i] = Arrival{At: at, Request: r}
	}
	return arrivals
}

// complicate adds some of priorities, adapters and an offload memory.
func complicate(rng *rand.Rand, p *Profile, arrivals []Arrival) {
	p.Priority = rng.IntN(2) == 0
	if rng.IntN(2) == 0 {
		p.LoRA = LoRA{Slots: 1 + rng.IntN(3), LoadMs: 2, PerAdapterUs: 100}
	}
	if p.KV.Blocks > 0 && rng.IntN(2) == 0 {
		p.KV.BytesPerToken, p.Offload = 1000, Offload{Blocks: 1 + rng.IntN(40), GBPerS: 0.01}
	}
	for i := range arrivals {
		arrivals[i].Priority = rng.IntN(3)
		arrivals[i].Adapter = []string{"", "a", "b", "c", "d"}[rng.IntN(5)]
	}
}

func TestProperties(t *testing.T) {
	preemptions := map[string]int64{}
	for trial := range uint64(400) {
		rng := rand.New(rand.NewPCG(trial, 7))
		p := randomProfile(rng)
		arrivals := randomArrivals(rng, p, 1+rng.IntN(60))
		if trial%2 == 1 {
			complicate(rng, &p, arrivals)
		}
		got, stats := drive(t, p, trial, arrivals)
		preemptions[p.Policy] += stats.Preemptions
		name := fmt.Sprintf("trial %d (%s)", trial, p.Policy)
		if stats.Running != 0 || stats.Waiting != 0 || stats.KVUsedBlocks != 0 || stats.Finished != int64(len(arrivals)) {
			t.Fatalf("%s: at the end %+v", name, stats)
		}
		var total int64
		for _, a := range arrivals {
			checkEmissions(t, name, &a.Request, got[a.ID])
			for _, m := range got[a.ID] {
				total += int64(m.Tokens)
			}
		}
		if total != stats.GeneratedTokens {
			t.Fatalf("%s: %d tokens emitted, %d counted", name, total, stats.GeneratedTokens)
		}
		again, _ := drive(t, p, trial, arrivals)
		if diff := gocmp.Diff(got, again); diff != "" {
			t.Fatalf("%s: the same run again differs:\n%s", name, diff)
		}
	}
	if preemptions["chunked"] == 0 || preemptions["prefill-first"] == 0 || preemptions["reserve"] != 0 {
		t.Errorf("preemptions: %v, want some, some and none for reserve", preemptions)
	}
}

// checkEmissions checks the invariants of the emissions of one request.
func checkEmissions(t *testing.T, name string, r *Request, story []Emission) {
	t.Helper()
	if len(story) == 0 {
		t.Fatalf("%s: request %d was lost", name, r.ID)
	}
	tokens := 0
	for i, m := range story {
		tokens += m.Tokens
		last := i == len(story)-1
		if m.Tokens < 1 || m.First != (i == 0) || m.Last != last || (m.Finish != "") != last || (m.EOS && !last) {
			t.Fatalf("%s: request %d, emission %d of %d: %+v", name, r.ID, i, len(story), m)
		}
		if m.Cached >= r.Prompt || last && m.Admitted != story[0].Admitted {
			t.Fatalf("%s: request %d of %d prompt tokens: %+v", name, r.ID, r.Prompt, m)
		}
	}
	end := story[len(story)-1]
	want := -1
	switch {
	case r.IgnoreEOS || r.Output >= r.MaxNew:
		want = r.MaxNew
	case r.Output > 0:
		want = r.Output + 1
	}
	if want > 0 && tokens != want {
		t.Fatalf("%s: request %+v got %d tokens, want %d", name, r, tokens, want)
	}
	if tokens > r.MaxNew || end.EOS != (end.Finish == FinishStop) || (end.Finish == FinishLength) != (tokens == r.MaxNew && !end.EOS) {
		t.Fatalf("%s: request %+v got %d tokens and ended with %+v", name, r, tokens, end)
	}
}

func TestAdmissionIsFIFO(t *testing.T) {
	for _, policy := range policies {
		for trial := range uint64(50) {
			rng := rand.New(rand.NewPCG(trial, 8))
			p := randomProfile(rng)
			p.Policy = policy.Name
			arrivals := randomArrivals(rng, p, 40)
			got, _ := drive(t, p, trial, arrivals)
			sorted := slices.IsSortedFunc(arrivals, func(a, b Arrival) int {
				return cmp.Compare(got[a.ID][0].Admitted, got[b.ID][0].Admitted)
			})
			if !sorted {
				t.Fatalf("%s, trial %d: a request was admitted before one that came earlier", policy.Name, trial)
			}
		}
	}
}

func TestPreemptionRecomputes(t *testing.T) {
	// Two requests of 8 + 8 tokens in 5 blocks of 4: both prompts fit, both outputs
	// do not.
	p := plain("chunked")
	p.KV.Blocks = 5
	arrivals := []Arrival{
		{Request: Request{ID: 1, Prompt: 8, MaxNew: 8, IgnoreEOS: true}},
		{Request: Request{ID: 2, Prompt: 8, MaxNew: 8, IgnoreEOS: true}},
	}
	got, stats := drive(t, p, 1, arrivals)
	for id, wantPreemptions := range map[uint64]int{1: 0, 2: 1} {
		story := got[id]
		if len(story) != 8 || story[7].Preemptions != wantPreemptions {
			t.Errorf("request %d: %d tokens and %d preemptions, want 8 and %d", id, len(story), story[len(story)-1].Preemptions, wantPreemptions)
		}
	}
	// Request 1 gets the fifth block for its first decode. Request 2 gets none and
	// later recomputes its prompt and its first token.
	if want := int64(8 + 8 + 9); stats.PromptTokens != want {
		t.Errorf("computed %d prompt tokens, want %d", stats.PromptTokens, want)
	}
}

// A step does not admit a request it has just preempted, because the next step
// would preempt it again. Without this rule there are four preemptions.
func TestPreemptionDoesNotThrash(t *testing.T) {
	p := plain("chunked")
	p.KV.Blocks, p.StepTokens = 5, 4
	_, stats := drive(t, p, 1, []Arrival{
		{Request: Request{ID: 1, Prompt: 8, MaxNew: 8, IgnoreEOS: true}},
		{Request: Request{ID: 2, Prompt: 8, MaxNew: 8, IgnoreEOS: true}},
	})
	if stats.Preemptions != 2 {
		t.Errorf("%d preemptions, want 2", stats.Preemptions)
	}
}

func TestReserveNeverRunsOut(t *testing.T) {
	p := plain("reserve")
	p.KV.Blocks = 8 // two requests of 8 + 8
	var arrivals []Arrival
	for i := range uint64(3) {
		arrivals = append(arrivals, Arrival{Request: Request{ID: i, Prompt: 8, MaxNew: 8, Output: 2}})
	}
	got, stats := drive(t, p, 1, arrivals)
	if stats.Preemptions != 0 {
		t.Errorf("%d preemptions", stats.Preemptions)
	}
	if got[1][0].Admitted != 0 || got[2][0].Admitted == 0 {
		t.Errorf("admitted at %v and %v, want the second at once and the third later", got[1][0].Admitted, got[2][0].Admitted)
	}
}

func TestReserveWaits(t *testing.T) {
	// One request runs. Another arrives during its prefill and must wait for three
	// decode steps.
	p := plain("reserve")
	p.Reserve = Reserve{WaitSteps: 3, WaitingRatio: 2}
	arrivals := []Arrival{
		{Request: Request{ID: 1, Prompt: 4, MaxNew: 10, IgnoreEOS: true}},
		{At: time.Millisecond, Request: Request{ID: 2, Prompt: 4, MaxNew: 1}},
	}
	got, _ := drive(t, p, 1, arrivals)
	if want := 7 * time.Millisecond; got[2][0].Admitted != want { // 4 of prefill, 3 of decode
		t.Errorf("admitted at %v, want %v", got[2][0].Admitted, want)
	}
	p.Reserve.WaitingRatio = 1
	got, _ = drive(t, p, 1, arrivals)
	if want := 4 * time.Millisecond; got[2][0].Admitted != want {
		t.Errorf("with one waiting for one running: admitted at %v, want %v", got[2][0].Admitted, want)
	}
}

func TestPoliciesDiffer(t *testing.T) {
	// A request decodes while a request of 100 prompt tokens arrives. The budget is
	// 64, and a token takes 1 ms.
	arrivals := []Arrival{
		{Request: Request{ID: 1, Prompt: 10, MaxNew: 5, IgnoreEOS: true}},
		{At: 5 * time.Millisecond, Request: Request{ID: 2, Prompt: 100, MaxNew: 1}},
	}
	for _, tc := range []struct {
		policy string
		want   []int // times in ms of the tokens of request 1, then of request 2
	}{
		{"chunked", []int{10, 74, 112, 113, 114, 112}}, // 1 + 63 tokens, then 1 + 37
		{"prefill-first", []int{10, 111, 112, 113, 114, 110}},
		{"reserve", []int{10, 111, 112, 113, 114, 110}},
	} {
		p := plain(tc.policy)
		traces, _, err := Simulate(p, 1, arrivals)
		must.Do(t, err)
		var got []int
		for _, trace := range traces {
			for _, ev := range trace.Events {
				got = append(got, int(ev.At/time.Millisecond))
			}
		}
		if diff := gocmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.policy, diff)
		}
	}
}

func TestOutcome(t *testing.T) {
	for _, tc := range []struct {
		name   string
		r      Request
		tokens int
		finish string
		eos    bool
	}{
		{"stops", Request{Output: 3, MaxNew: 10}, 4, FinishStop, true},
		{"stops at its last token", Request{Output: 9, MaxNew: 10}, 10, FinishStop, true},
		{"reaches the limit", Request{Output: 10, MaxNew: 10}, 10, FinishLength, false},
		{"would go beyond", Request{Output: 99, MaxNew: 10}, 10, FinishLength, false},
		{"is made to go on", Request{Output: 3, MaxNew: 10, IgnoreEOS: true}, 10, FinishLength, false},
		{"by the profile", Request{MaxNew: 10}, 6, FinishStop, true},
		{"by the profile's limit", Request{IgnoreEOS: true}, 20, FinishLength, false},
		{"one token", Request{MaxNew: 1}, 1, FinishLength, false},
	} {
		tc.r.Prompt = 3
		got, _ := drive(t, plain("chunked"), 1, []Arrival{{Request: tc.r}})
		story := got[0]
		end := story[len(story)-1]
		if len(story) != tc.tokens || end.Finish != tc.finish || end.EOS != tc.eos {
			t.Errorf("%s: %d tokens, %+v; want %d, %s, EOS %v", tc.name, len(story), end, tc.tokens, tc.finish, tc.eos)
		}
	}
}

func TestOutcomeDependsOnSeedAndIDAlone(t *testing.T) {
	p := plain("chunked")
	p.Output = Lengths{Kind: "lognormal", Mean: 50, SD: 40, Max: 1000}
	length := func(seed uint64, ids ...uint64) map[uint64]int {
		var arrivals []Arrival
		for _, id := range ids {
			arrivals = append(arrivals, Arrival{Request: Request{ID: id, Prompt: 3}})
		}
		got, _ := drive(t, p, seed, arrivals)
		lengths := map[uint64]int{}
		for id, story := range got {
			lengths[id] = len(story)
		}
		return lengths
	}
	together := length(1, 5, 6, 7)
	for id, n := range together {
		if alone := length(1, id)[id]; alone != n {
			t.Errorf("request %d: %d tokens alone, %d among others", id, alone, n)
		}
	}
	if other := length(2, 5, 6, 7); gocmp.Equal(together, other) {
		t.Errorf("another seed gave the same lengths %v", other)
	}
}

func TestSpeculation(t *testing.T) {
	run := func(acceptance float64) []Emission {
		p := plain("chunked")
		p.Speculation = Speculation{DraftTokens: 3, Acceptance: acceptance}
		got, _ := drive(t, p, 1, []Arrival{{Request: Request{Prompt: 4, MaxNew: 4001, IgnoreEOS: true}}})
		return got[0]
	}
	if all := run(1); len(all) != 1+1000 || all[1].Tokens != 4 {
		t.Errorf("every draft kept: %d events, the second of %d tokens, want 1001 of 4", len(all), all[1].Tokens)
	}
	if none := run(0); len(none) != 4001 {
		t.Errorf("no draft kept: %d events, want 4001", len(none))
	}
	// The last token leaves no room for drafts: its step computes one token in one
	// millisecond.
	p := plain("chunked")
	p.Speculation = Speculation{DraftTokens: 3, Acceptance: 1}
	if _, stats := drive(t, p, 1, []Arrival{{Request: Request{Prompt: 4, MaxNew: 2, IgnoreEOS: true}}}); stats.BusyTime != 5*time.Millisecond {
		t.Errorf("a prompt of 4 and a last token took %v, want 5ms", stats.BusyTime)
	}
	// The mean is 1 + 1/2 + 1/4 + 1/8 tokens: 4000 / 1.875 events, with a standard
	// deviation of about 25.
	if half := len(run(0.5)); half < 2034 || half > 2234 {
		t.Errorf("every other draft kept: %d events, want about 2134", half)
	}
}

func TestCancel(t *testing.T) {
	request := func(id uint64) *Request { return &Request{ID: id, Prompt: 8, MaxNew: 8, IgnoreEOS: true} }
	p := plain("chunked")
	p.MaxSequences = 1
	p.FrontEnd.FixedMs = 5
	e := must.Get(New(p, 1))(t)
	var got []uint64
	finish := func() { e.Finish(func(m Emission) { got = append(got, m.ID) }) }
	for id := range uint64(5) {
		must.Do(t, e.Add(0, request(id)))
	}
	cancel := func(id uint64, when string) {
		t.Helper()
		if !e.Cancel(id) || e.Cancel(id) {
			t.Errorf("cancelling %d %s: want true, then false", id, when)
		}
	}
	cancel(0, "in the front end")
	now, _ := e.Next(0) // empty: the request is still in the front end
	finish()
	now, _ = e.Next(now) // request 1 runs
	cancel(2, "in the queue")
	finish()
	if want := []uint64{1}; !slices.Equal(got, want) {
		t.Fatalf("emitted for %v, want %v", got, want)
	}
	now, _ = e.Next(now)
	cancel(1, "in a step")
	finish()
	if stats := e.Stats(); len(got) != 1 || stats.Running != 0 || stats.KVUsedBlocks != 0 || stats.Waiting != 2 || stats.Cancelled != 3 {
		t.Fatalf("after that: emitted for %v, %+v", got, stats)
	}
	now, _ = e.Next(now)
	finish()
	cancel(3, "between steps")
	if stats := e.Stats(); stats.Running != 0 || stats.KVUsedBlocks != 0 {
		t.Fatalf("after that: %+v", stats)
	}
	for ok := true; ok; {
		finish()
		now, ok = e.Next(now)
	}
	if want := []uint64{1, 3, 4, 4, 4, 4, 4, 4, 4, 4}; !slices.Equal(got, want) {
		t.Errorf("emitted for %v, want %v", got, want)
	}
	if e.Cancel(4) {
		t.Error("cancelled a finished request")
	}
}

func TestCancelWhilePreempted(t *testing.T) {
	p := plain("chunked")
	p.KV.Blocks = 5
	e := must.Get(New(p, 1))(t)
	for id := range uint64(2) {
		must.Do(t, e.Add(0, &Request{ID: id, Prompt: 8, MaxNew: 8, IgnoreEOS: true}))
	}
	tokens := 0
	var now time.Duration
	for {
		end, ok := e.Next(now)
		if !ok {
			break
		}
		if e.Stats().Preemptions == 1 {
			e.Cancel(1)
		}
		e.checkInvariants(t)
		e.Finish(func(m Emission) {
			if m.ID == 0 {
				tokens++
			}
		})
		now = end
	}
	if stats := e.Stats(); tokens != 8 || stats.Waiting != 0 || stats.Cancelled != 1 || stats.Preemptions != 1 {
		t.Errorf("%d tokens of the other, %+v", tokens, stats)
	}
}

func TestNextRepeatsItself(t *testing.T) {
	e := must.Get(New(plain("chunked"), 1))(t)
	e.Finish(func(Emission) { t.Error("emission without a step") })
	if _, ok := e.Next(0); ok {
		t.Error("an idle engine has a step")
	}
	must.Do(t, e.Add(time.Second, &Request{Prompt: 3, MaxNew: 1}))
	first, _ := e.Next(time.Second)
	if again, ok := e.Next(2 * time.Second); !ok || again != first || first != time.Second+3*time.Millisecond {
		t.Errorf("step ends at %v, then at %v (%v)", first, again, ok)
	}
	if steps := e.Stats().Steps; steps != 1 {
		t.Errorf("%d steps", steps)
	}
}

func TestAddRefuses(t *testing.T) {
	p := plain("chunked")
	p.KV.Blocks = 10
	p.ContextTokens = 39
	for _, tc := range []struct {
		name    string
		r       Request
		tooLong bool
		want    string
	}{
		{"no prompt", Request{MaxNew: 1}, false, "prompt of 0 tokens"},
		{"a negative prompt", Request{Prompt: -5, MaxNew: 1}, false, "prompt of -5 tokens"},
		{"a negative limit", Request{Prompt: 1, MaxNew: -1}, false, "-1 new tokens"},
		{"a negative output", Request{Prompt: 1, MaxNew: 1, Output: -1}, false, "-1 tokens"},
		{"too long a context", Request{Prompt: 30, MaxNew: 10}, true, "context of 39"},
		{"the profile's limit is too long", Request{Prompt: 30}, true, "20 new tokens"},
		{"an ID in flight", Request{ID: 9, Prompt: 1, MaxNew: 1}, false, "already in flight"},
	} {
		e, err := New(p, 1)
		must.Do(t, err)
		must.Do(t, e.Add(0, &Request{ID: 9, Prompt: 1, MaxNew: 1}))
		err = e.Add(0, &tc.r)
		if err == nil || !strings.Contains(err.Error(), tc.want) || errors.Is(err, errTooLong) != tc.tooLong {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
		if waiting := e.Stats().Waiting; waiting != 1 {
			t.Errorf("%s: %d waiting", tc.name, waiting)
		}
	}
	p.ContextTokens = 0
	e := must.Get(New(p, 1))(t)
	if err := e.Add(0, &Request{Prompt: 31, MaxNew: 10}); !errors.Is(err, errTooLong) || !strings.Contains(err.Error(), "KV cache of 40") {
		t.Errorf("more than the KV cache holds: %v", err)
	}
}
