package proof_test

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/recordjson"
	"github.com/tacho-bench/tacho/internal/route"
	"github.com/tacho-bench/tacho/sim/step"
)

// TestResultsStay computes loads on fleets of many engines and compares the
// records byte for byte with records of the original implementation, which
// processed every block and every token separately. A difference changes the
// model: it is either a bug or listed in the CHANGELOG.
func TestResultsStay(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors round sums of products otherwise")
	}
	p := step.Profile{
		Name: "stays", Policy: "chunked", MaxSequences: 64, StepTokens: 2048, ContextTokens: 32768,
		KV:     step.KV{BlockTokens: 16, Blocks: 1500, PrefixCache: true, Watermark: 0.01, BytesPerToken: 131072},
		Output: step.Lengths{Mean: 60, Max: 500},
		Cost: step.Cost{
			Step:                    []step.Knot{{Tokens: 1, Ms: 6}, {Tokens: 64, Ms: 7}, {Tokens: 2048, Ms: 90}},
			DecodeNsPerContextToken: 3, PrefillNsPerTokenAndContext: 0.4, Noise: 0.02,
		},
	}
	shared := load{requests: 300, prompt: 400, shared: 250, families: 8, answer: 40, perSecond: 40}
	for _, tt := range []struct {
		name   string
		change func(*step.Profile)
		n      int
		router string
		load   load
		want   string
	}{
		{"plain", func(*step.Profile) {}, 4, "least-loaded", shared, "1fb0fe959059c444"},
		{"prefix", func(*step.Profile) {}, 3, "prefix", shared, "cec2c6ccbfa8b2c0"},
		{"little memory", func(p *step.Profile) { p.KV.Blocks = 300 }, 1, "round-robin", load{requests: 100, prompt: 600, answer: 60, perSecond: 8}, "1736cb3fc8d5b506"},
		{"second memory", func(p *step.Profile) { p.KV.Blocks, p.Offload = 300, step.Offload{Blocks: 900, GBPerS: 25} }, 1, "random", shared, "65de0f436b091518"},
		{"no cache", func(p *step.Profile) { p.KV.PrefixCache = false }, 2, "sticky", shared, "4fde87551fae597d"},
		{"drafts", func(p *step.Profile) { p.Speculation = step.Speculation{DraftTokens: 3, Acceptance: 0.6, DraftMs: 0.5} }, 2, "power-of-two", shared, "e155cd21f3cd8019"},
		{"api and host", func(p *step.Profile) {
			p.Host = step.Host{StepsInFlight: 2, LaunchMs: 2, GraphMs: 3, GraphTokens: 512, EagerMs: 6, PerSequenceUs: 5}
			p.API = step.API{RequestMs: 1, Turns: 2, SubmitMs: 0.2, TokenUs: 10, EventUs: 60, EndMs: 0.3, PieceTokens: 128, HandOverMs: 0.1}
		}, 2, "least-loaded", shared, "1a7a04837d1a9c12"},
		{"split", func(p *step.Profile) { p.Split = step.Split{Prefill: 1, Decode: 2, GBPerS: 20, LatencyMs: 2} }, 2, "least-loaded", shared, "329ce79ba596cba3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := p
			tt.change(&q)
			policy := must.Get(route.Find(tt.router))(t)
			sum := sha256.New()
			for _, r := range computed(t, q, tt.n, policy, tt.load) {
				line := must.Get(recordjson.Encode(r))(t)
				_, _ = sum.Write(append(line, '\n'))
			}
			if got := fmt.Sprintf("%x", sum.Sum(nil)[:8]); got != tt.want {
				t.Errorf("records have the sum %s, want %s", got, tt.want)
			}
		})
	}
}
