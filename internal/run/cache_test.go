package run_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/sim/step"
	"github.com/tacho-bench/tacho/workload"
)

// A second run with the same seed gets a cache warning, because cached prompts
// make the server look faster. Levels with the same seed and prompts with a
// shared prefix by design get no warning.
func TestPromptsFoundInACache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := must.Get(sim.New(sim.Options{Profile: &step.Profile{
			Policy: "chunked", MaxSequences: 16, StepTokens: 4096, KV: step.KV{BlockTokens: 16, Blocks: 10_000, PrefixCache: true},
			Output: step.Lengths{Mean: 5, Max: 8},
			Cost:   step.Cost{Step: []step.Knot{{Tokens: 1, Ms: 1}}, Prefill: []step.Knot{{Tokens: 1, Ms: 1}}},
		}}))(t)
		defer func() { _ = engine.Close() }()
		srv := listen(t, engine)
		defer srv.Close()
		found := func(seed uint64, change func(*plan.Plan)) (out []bool) {
			p := planFor(srv.URL, func(p *plan.Plan) {
				p.Seed, p.NumPrompts, p.RandomInputLen, p.NumWarmups = &seed, 20, workload.Fixed(200), 2
				change(p)
			})
			for _, s := range do(t, p).summaries {
				out = append(out, slices.ContainsFunc(s.Verdict.Reasons, func(r metric.Reason) bool {
					return r.Code == "cache" && r.Severity == metric.Degraded
				}))
				if s.Config.SharedShare == nil {
					t.Error("nobody knows what prompts share")
				}
			}
			return out
		}
		for _, c := range []struct {
			name   string
			seed   uint64
			change func(*plan.Plan)
			want   []bool
		}{
			{"two levels under one seed", 7, func(p *plan.Plan) { list(p, "num-prompts", "20,20") }, []bool{false, false}},
			{"the same seed again", 7, func(*plan.Plan) {}, []bool{true}},
			{"a prefix by design", 8, func(p *plan.Plan) { p.RandomPrefixLen = 400 }, []bool{false}},
			{"the same again", 8, func(p *plan.Plan) { p.RandomPrefixLen = 400 }, []bool{true}},
		} {
			if got := found(c.seed, c.change); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		}
	})
}
