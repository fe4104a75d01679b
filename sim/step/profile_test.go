package step

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/bounded"
	"github.com/tacho-bench/tacho/internal/must"
)

func TestEmbeddedProfiles(t *testing.T) {
	names := Names()
	for _, want := range []string{
		"vllm-405b-mi300x", "tgi-405b-mi300x", "prefill-decode-002", "rate-limited-003",
		"vllm-8b-h100", "sglang-70b-h100x4", "trtllm-70b-fp8-h100x2", "llamacpp-8b-q4-rtx4090",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("no profile %s among %v", want, names)
		}
	}
	for _, name := range names {
		p, err := Load(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if p.Source == "" || !strings.HasPrefix(p.HeldOut, "nothing: ") && !strings.Contains(p.HeldOut, " %") {
			t.Errorf("%s: the profile needs source and held_out, got %q and %q", name, p.Source, p.HeldOut)
		}
		if p.Name != name || p.About == "" || p.Engine == "" || p.Model == "" {
			t.Errorf("%s: name %q, about %q, engine %q, model %q", name, p.Name, p.About, p.Engine, p.Model)
		}
		if _, _, err := Simulate(p, 1, []Arrival{{Request: Request{Prompt: 10}}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const minimal = `
policy: chunked
max_sequences: 4
step_tokens: 16
kv: {block_tokens: 4}
output: {mean: 5, max: 10}
cost: {step: [{tokens: 1, ms: 1}]}
`

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	must.Do(t, os.WriteFile(path, []byte(minimal), 0o600))
	p, err := Load(path)
	if err != nil || p.StepTokens != 16 {
		t.Errorf("from a file: %+v, %v", p, err)
	}
	for _, tc := range []struct{ name, want string }{
		{"vlm-8b-h100", `did you mean "vllm-8b-h100"`},
		{"vlm-8b", "vllm-8b-h100"},
		{"./no-such", "no such file"},
		{"no-such.yml", "no such file"},
		{"../profiles", "profiles"},
		{"", "unknown profile"},
	} {
		if _, err := Load(tc.name); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Load(%q): %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestParseComplains(t *testing.T) {
	replace := func(old, replacement string) string {
		if !strings.Contains(minimal, old) {
			t.Fatalf("%q is not in the minimal profile", old)
		}
		return strings.Replace(minimal, old, replacement, 1)
	}
	for _, tc := range []struct{ name, yaml, want string }{
		{"nothing", "", "empty"},
		{"no YAML", "{", "yaml"},
		{"another kind of thing", "- 1", "cannot unmarshal"},
		{"a misspelt field", minimal + "step_token: 5\n", "field step_token not found; docs/profile.md lists all fields"},
		{"no such policy", replace("chunked", "fifo"), `policy: "fifo" is not one of chunked, prefill-first, reserve`},
		{"no sequences", replace("max_sequences: 4", "max_sequences: 0"), "max_sequences: 0"},
		{"negative budget", replace("step_tokens: 16", "step_tokens: -1"), "step_tokens: -1"},
		{"no block size", replace("block_tokens: 4", "blocks: 4"), "kv.block_tokens: 0"},
		{"all kept free", replace("block_tokens: 4", "block_tokens: 4, watermark: 1"), "kv.watermark: 1"},
		{"not a number", replace("block_tokens: 4", "block_tokens: 4, watermark: .nan"), "kv.watermark: NaN"},
		{"certain acceptance", minimal + "speculation: {acceptance: 1.5}\n", "speculation.acceptance: 1.5"},
		{"no such lengths", replace("mean: 5", "kind: zipf"), `output.kind: "zipf" is not one of fixed, uniform`},
		{"no limit", replace("max: 10", "min: 0"), "output.max: 0"},
		{"crossed limits", replace("max: 10", "max: 10, min: 11"), "output.min: 11"},
		{"no mean", replace("mean: 5", "kind: normal"), "output.mean: 0"},
		{"infinite deviation", replace("mean: 5", "mean: 5, kind: normal, sd: .inf"), "output.sd: +Inf"},
		{"no cost", replace("{step: [{tokens: 1, ms: 1}]}", "{}"), "cost.step: needs"},
		{"knots out of order", replace("[{tokens: 1, ms: 1}]", "[{tokens: 2, ms: 1}, {tokens: 2, ms: 1}]"), "cost.step[1].tokens: 2 must be above 2"},
		{"a knot at zero", replace("{tokens: 1,", "{tokens: 0,"), "cost.step[0].tokens: 0"},
		{"negative time", replace("ms: 1", "ms: -1"), "cost.step[0].ms: -1"},
		{"negative prefill time", replace("ms: 1}]", "ms: 1}], prefill: [{tokens: 1, ms: -1}]"), "cost.prefill[0].ms: -1"},
		{"noise", replace("ms: 1}]", "ms: 1}], noise: -0.1"), "cost.noise: -0.1"},
		{"tick", replace("ms: 1}]", "ms: 1}], tick_ms: .inf"), "cost.tick_ms: +Inf"},
		{"front end", minimal + "front_end: {fixed_ms: -3}\n", "front_end.fixed_ms: -3"},
	} {
		_, err := parse([]byte(tc.yaml))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

// FuzzParse searches for a profile that needs too much memory, or a valid profile
// that makes the engine panic, lose a request or never end.
func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte(aliases(20)))
	for _, name := range Names() {
		b := must.Get(os.ReadFile(filepath.Join("..", "profiles", name+".yaml")))(f)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		bounded.Run(t, 256<<20, func() { tryProfile(t, b) })
	})
}

// aliases returns YAML whose list doubles n times.
func aliases(n int) string {
	text := []string{"errors: {a0: &a0 [x, x]"}
	for i := range n {
		text = append(text, fmt.Sprintf("a%d: &a%d [*a%d, *a%d]", i+1, i+1, i, i))
	}
	return strings.Join(text, ", ") + "}\n"
}

// tryProfile simulates some requests, if b is a valid profile.
func tryProfile(t *testing.T, b []byte) {
	p, err := parse(b)
	if err != nil {
		return
	}
	var arrivals []Arrival
	for i := range uint64(6) {
		arrivals = append(arrivals, Arrival{
			At:      time.Duration(i/2) * time.Second,
			Request: Request{ID: i, Prompt: 1 + int(7*i), MaxNew: 1 + int(i), Output: int(i), Blocks: []uint64{1, 2, 3}},
		})
	}
	traces, stats, err := Simulate(p, 1, arrivals)
	must.Do(t, err)
	for _, trace := range traces {
		if trace.Err == nil && trace.Finish == "" {
			t.Fatalf("request %d was lost: %+v", trace.ID, stats)
		}
	}
}

// The profiles of modern engines reproduce the published measurements that their
// files cite.
func TestPublishedFigures(t *testing.T) {
	within := func(what string, got, want, percent float64) {
		t.Helper()
		if math.Abs(got/want-1) > percent/100 {
			t.Errorf("%s: %.2f, published %.2f, want it within %.0f %%", what, got, want, percent)
		}
	}
	load := func(name string) Profile {
		t.Helper()
		p := must.Get(Load(name))(t)
		return p
	}
	simulate := func(p Profile, arrivals []Arrival) []Trace {
		t.Helper()
		traces, _, err := Simulate(p, 1, arrivals)
		must.Do(t, err)
		return traces
	}

	sglang := load("sglang-70b-h100x4")
	for _, tc := range []struct{ rate, ttft, tpot, itl float64 }{{4, 53.94, 25.03, 21.67}, {8, 58.11, 33.07, 24.45}} {
		ttft, tpot, itl := medians(simulate(sglang, shareGPTLike(int(300*tc.rate), tc.rate)))
		within("sglang TTFT", ttft, tc.ttft, 5)
		within("sglang TPOT", tpot, tc.tpot, 5)
		within("sglang ITL", itl, tc.itl, 5)
	}

	trtllm := load("trtllm-70b-fp8-h100x2")
	for _, tc := range []struct {
		prompt, output int
		tokensPerS     float64
	}{{1000, 1000, 4205}, {2048, 128, 762}, {5000, 500, 898}} {
		m := must.Get(measure(simulate(trtllm, alike(1500, tc.prompt, tc.output))))(t)
		within("trtllm throughput", m[3], tc.tokensPerS, 10)
	}

	for n, tpot := range map[int]float64{1: 6.48, 4: 6.59} {
		m := must.Get(measure(simulate(load("vllm-8b-h100"), alike(n, 100, 128))))(t)
		within("vllm TPOT", m[1], tpot, 2)
		if n == 1 {
			within("vllm TTFT", m[0], 13.98, 10)
		}
	}

	m := must.Get(measure(simulate(load("llamacpp-8b-q4-rtx4090"), alike(1, 8000, 100))))(t)
	// 9.73 ms with 32,768 tokens of context, and proportionally less with 8,050.
	within("llama.cpp TPOT", m[1], 9.73-4.26*(32768-8050)/32768, 2)
}

// alike returns n simultaneous requests with the same lengths.
func alike(n, prompt, output int) []Arrival {
	arrivals := make([]Arrival, n)
	for i := range arrivals {
		arrivals[i].Request = Request{ID: uint64(i), Prompt: prompt, MaxNew: output, IgnoreEOS: true}
	}
	return arrivals
}

// shareGPTLike returns Poisson arrivals with the mean lengths of the published run
// (224 and 189 tokens) and variances like the lengths in the dataset.
func shareGPTLike(n int, rate float64) []Arrival {
	rng := rand.New(rand.NewPCG(1, 1))
	prompts := Lengths{Kind: "lognormal", Mean: 224, SD: 300, Min: 4, Max: 2000}
	outputs := Lengths{Kind: "lognormal", Mean: 189, SD: 200, Min: 4, Max: 2000}
	arrivals := make([]Arrival, n)
	at := 0.0
	for i := range arrivals {
		at += rng.ExpFloat64() / rate
		arrivals[i] = Arrival{
			At:      time.Duration(at * float64(time.Second)),
			Request: Request{ID: uint64(i), Prompt: prompts.draw(0, rng), MaxNew: outputs.draw(0, rng), IgnoreEOS: true},
		}
	}
	return arrivals
}

func medians(traces []Trace) (ttft, tpot, itl float64) {
	var ttfts, tpots, itls []float64
	for _, trace := range traces {
		first, n := trace.Events[0].At, len(trace.Events)
		ttfts = append(ttfts, inMs(first-trace.Arrival))
		if n > 1 {
			tpots = append(tpots, inMs(trace.Events[n-1].At-first)/float64(n-1))
		}
		for j := 1; j < n; j++ {
			itls = append(itls, inMs(trace.Events[j].At-trace.Events[j-1].At))
		}
	}
	median := func(x []float64) float64 {
		slices.Sort(x)
		return x[len(x)/2]
	}
	return median(ttfts), median(tpots), median(itls)
}
