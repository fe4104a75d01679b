package proof_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/predict"
	"github.com/tacho-bench/tacho/internal/route"
	"github.com/tacho-bench/tacho/pace"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/sim/step"
	"github.com/tacho-bench/tacho/transport"
)

// A load consists of requests with token ids. Requests of a family share their
// first ids.
type load struct {
	requests, prompt, shared, families, answer int
	perSecond                                  float64
	ends                                       bool // answers end early
}

// Session implements tacho.Source.
func (l load) Session(i uint64) (tacho.Session, error) {
	q := tacho.Request{Session: i, MaxTokens: l.answer, IgnoreEOS: !l.ends, InputTokens: l.prompt}
	family := i % uint64(max(l.families, 1))
	for _, part := range []struct {
		n    int
		seed uint64
	}{{l.shared, family}, {l.prompt - l.shared, 1000 + i}} {
		rng := rand.New(rand.NewPCG(part.seed, 5))
		for range part.n {
			q.Input.IDs = append(q.Input.IDs, 1000+rng.Int32N(20000))
		}
	}
	if i%3 > 0 {
		q.Model = adapters[i%3-1]
	}
	q.Extra = map[string]any{"priority": int(i % 4)}
	return tacho.Session{ID: i, Turns: []tacho.Turn{{Request: q}}}, nil
}

var adapters = []string{"first", "second"}

// kept stores records.
type kept struct {
	mu  sync.Mutex
	all []*tacho.Record
}

// Add implements tacho.Sink.
func (k *kept) Add(r *tacho.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, r)
	return nil
}

// Close implements tacho.Sink.
func (k *kept) Close() error { return nil }

const fleetSeed = 7

// overHTTP measures the load on simulated servers, over an in-memory network in
// a synctest bubble.
func overHTTP(t *testing.T, p step.Profile, n int, policy route.Policy, l load) []*tacho.Record {
	t.Helper()
	kind := backend.Kinds[slices.IndexFunc(backend.Kinds, func(k backend.Kind) bool { return k.Name == "vllm" })]
	out := &kept{}
	synctest.Test(t, func(t *testing.T) {
		var all []tacho.Backend
		var names []string
		for i := range n {
			server := must.Get(sim.New(sim.Options{Profile: &p, Seed: fleetSeed + uint64(i), Adapters: adapters}))(t)
			network := memnet.Listen()
			serving := &http.Server{Handler: server}
			served := make(chan struct{})
			go func() { defer close(served); _ = serving.Serve(network) }()
			client := must.Get(transport.New(transport.Options{BaseURL: "http://127.0.0.1:8000", Dial: network.Dial}))(t)
			t.Cleanup(func() {
				client.Close()
				_ = server.Close()
				_ = serving.Close()
				<-served
			})
			one := must.Get(kind.New(backend.Options{Client: client, Model: p.Model}))(t)
			all, names = append(all, one), append(names, fmt.Sprint(i))
		}
		spread := must.Get(backend.Spread(all, names, policy, fleetSeed))(t)
		must.Do(t, engine.Run(t.Context(), engine.Stage{Arrivals: l.arrivals(), Source: l, Backend: spread}, out))
	})
	return out.all
}

// computed predicts the same load.
func computed(t *testing.T, p step.Profile, n int, policy route.Policy, l load) []*tacho.Record {
	t.Helper()
	fleet := must.Get(predict.NewFleet(predict.FleetPlan{Profile: p, Replicas: n, Policy: policy, Seed: fleetSeed, RouteSeed: fleetSeed}))(t)
	out := &kept{}
	stage := predict.Stage{Arrivals: l.arrivals(), Source: l, Server: fleet, ByPrefix: policy.ByPrefix}
	if p.KV.PrefixCache {
		stage.BlockTokens = p.KV.BlockTokens
	}
	must.Do(t, predict.Run(t.Context(), stage, out))
	return out.all
}

func (l load) arrivals() func(yield func(uint64, time.Duration) bool) {
	return pace.Stripe(pace.Poisson{Rate: l.perSecond, Count: l.requests, Seed: fleetSeed}.Arrivals(), 0, 1)
}

// figuresOfRecords returns means and p99.
func figuresOfRecords(t *testing.T, records []*tacho.Record) map[string]float64 {
	t.Helper()
	values := map[string][]float64{}
	cached := 0
	for _, r := range records {
		if !r.OK() {
			t.Fatalf("request %d failed: %v", r.Session, r.Failure)
		}
		values["TTFT"] = append(values["TTFT"], (r.First() - r.Sent).Seconds())
		values["TPOT"] = append(values["TPOT"], (r.Last()-r.First()).Seconds()/float64(r.Output-1))
		values["E2EL"] = append(values["E2EL"], (r.Last() - r.Sent).Seconds())
		cached += r.Usage.Cached
	}
	out := map[string]float64{"requests": float64(len(records)), "cached": 1 + float64(cached)}
	for name, list := range values {
		slices.Sort(list)
		sum := 0.0
		for _, v := range list {
			sum += v
		}
		out["mean "+name], out["p99 "+name] = sum/float64(len(list)), list[len(list)*99/100]
	}
	return out
}

// TestFleetInMemory compares predictions with measurements of simulated
// servers, with the same requests at the same times. The network is in memory
// and time is virtual, so differences are small. `make test-fleet` does the
// same with processes on loopback.
func TestFleetInMemory(t *testing.T) {
	p := must.Get(step.Load("vllm-8b-h100"))(t)
	prefixes := load{requests: 80, prompt: 512, shared: 256, families: 16, answer: 32, perSecond: 60}
	for _, policy := range route.Policies {
		t.Run(policy.Name, func(t *testing.T) { holdAgainst(t, p, 4, policy, prefixes) })
	}
	least := must.Get(route.Find("least-loaded"))(t)
	for name, tt := range map[string]struct {
		change func(*step.Profile)
		load   load
	}{
		"long prompts":    {func(*step.Profile) {}, load{requests: 15, prompt: 8000, answer: 40, perSecond: 2}},
		"long answers":    {func(*step.Profile) {}, load{requests: 15, prompt: 100, answer: 600, perSecond: 4}},
		"shared prefixes": {func(*step.Profile) {}, load{requests: 60, prompt: 2048, shared: 1800, families: 4, answer: 32, perSecond: 10}},
		"answers that end": {func(p *step.Profile) {
			p.Output = step.Lengths{Kind: "normal", Mean: 20, SD: 8, Max: 60, Long: step.LongLengths{From: 1000, Mean: 5, SD: 2}}
		}, load{requests: 60, prompt: 200, answer: 40, perSecond: 20, ends: true}},
		"short of memory": {func(p *step.Profile) { p.KV.Blocks = 700 }, load{requests: 60, prompt: 600, answer: 60, perSecond: 20}},
		"a second memory": {func(p *step.Profile) {
			p.KV.Blocks, p.KV.BytesPerToken, p.Offload = 700, 131072, step.Offload{Blocks: 2000, GBPerS: 25}
		}, load{requests: 60, prompt: 600, answer: 60, perSecond: 20}},
		"priorities": {func(p *step.Profile) { p.Priority, p.MaxSequences = true, 8 }, load{requests: 60, prompt: 300, answer: 30, perSecond: 20}},
		"adapters":   {func(p *step.Profile) { p.LoRA = step.LoRA{Slots: 1, LoadMs: 20, PerAdapterUs: 300} }, load{requests: 60, prompt: 300, answer: 30, perSecond: 10}},
		"split": {func(p *step.Profile) {
			p.KV.BytesPerToken, p.Split = 131072, step.Split{Prefill: 1, Decode: 2, GBPerS: 20, LatencyMs: 2}
		}, prefixes},
		"ranks":  {func(p *step.Profile) { p.Parallel = step.Parallel{Data: 2, LockStep: true, Tensor: 2, AllReduceMs: 1} }, prefixes},
		"stages": {func(p *step.Profile) { p.Parallel = step.Parallel{Pipeline: 2, HopMs: 0.5} }, prefixes},
	} {
		q := p
		tt.change(&q)
		t.Run(name, func(t *testing.T) { holdAgainst(t, q, 1, least, tt.load) })
	}
}

func holdAgainst(t *testing.T, p step.Profile, n int, policy route.Policy, l load) {
	t.Helper()
	measured := figuresOfRecords(t, overHTTP(t, p, n, policy, l))
	predicted := figuresOfRecords(t, computed(t, p, n, policy, l))
	for name, m := range measured {
		most := 0.01
		if name[0] == 'p' {
			most = 0.03
		}
		off := predicted[name]/m - 1
		t.Logf("%-10s measured %10.4f  predicted %10.4f  %+.2f %%", name, m, predicted[name], 100*off)
		if !(math.Abs(off) <= most) {
			t.Errorf("%s is %.2f %% off", name, 100*off)
		}
	}
}
