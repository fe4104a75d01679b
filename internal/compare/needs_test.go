package compare_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/truth"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// TestGateNeeds compares equal servers by the conditions of docs/ci.md. With the number of requests there, every pair
// is judged and passes. With one request less, no pair is judged, even if the second run seems better. TRIES is the
// number of pairs.
func TestGateNeeds(t *testing.T) {
	pairs := tries(6)
	for _, load := range []trial{{name: "open", rate: 13}, {name: "closed", limit: 8}} {
		for condition, need := range map[string]int{
			"ttft.mean>+5%": 40, "tpot.mean>+5%": 40, "request_throughput<-5%": 40, "failures>+0%": 40,
			"ttft.p90>+5%": 50, "e2el.p90>+5%": 50, "ttft.p99>+5%": 500, "tpot.p99>+5%": 500,
		} {
			states := map[int]map[compare.State]int{need: {}, need - 1: {}}
			for n, count := range states {
				for i := range pairs {
					seed := uint64(i*100 + 1)
					load.requests = n
					run := func(seed, server uint64) []outcome.Run {
						queue := truth.Queue{Slots: 8, Service: 300 * time.Millisecond, Sigma: 0.8}
						return []outcome.Run{served(t, &load, seed, queue.Servers()(server))}
					}
					asked := conditions(t, condition)
					c := must.Get(compare.Compare([]compare.Side{{Name: "a", Runs: run(seed, seed)}, {Name: "b", Runs: run(seed, seed+20)}}, compare.Options{Quantities: []metric.Quantity{asked[0].Quantity}}))(t)
					count[c.Judge(asked, false)[0].State]++
				}
			}
			t.Logf("%s, %s: with %d requests %v, with one less %v", load.name, condition, need, states[need], states[need-1])
			if states[need][compare.NotJudged] > 0 || states[need-1][compare.NotJudged] < pairs || float64(states[need][compare.Failed]) > 0.1*float64(pairs)+1 {
				t.Errorf("%s, %s: with %d requests %v, with one less %v", load.name, condition, need, states[need], states[need-1])
			}
		}
	}
}

// TestGateExample judges the example of docs/ci.md for pairs of engines with the same work: equal engines, and a second
// engine that is 10 % slower.
func TestGateExample(t *testing.T) {
	pairs := tries(6)
	asked := conditions(t, "ttft.mean>+5%,tpot.mean>+5%,failures>1%")
	for _, n := range []int{200, 400} {
		for _, slower := range []float64{1, 1.1} {
			failed, unjudged := 0, 0
			load := trial{rate: 10, requests: n}
			for i := range pairs {
				seed := uint64(i*100 + 1)
				a, b := computed(t, &load, seed, seed, 1), computed(t, &load, seed, seed+20, slower)
				c := must.Get(compare.Compare([]compare.Side{{Name: "a", Runs: []outcome.Run{a}}, {Name: "b", Runs: []outcome.Run{b}}}, compare.Options{Quantities: defaults(t)}))(t)
				found := c.Judge(asked, false)
				is := func(s compare.State) bool {
					return slices.ContainsFunc(found, func(f compare.Finding) bool { return f.State == s })
				}
				switch {
				case is(compare.Failed):
					failed++
				case is(compare.NotJudged):
					unjudged++
				}
			}
			t.Logf("%d requests, step times x %g: %d pairs, failed %d, not judged %d", n, slower, pairs, failed, unjudged)
			if share := float64(failed) / float64(pairs); unjudged > 0 || slower == 1 && share > 0.05 || slower > 1 && share < 0.9 {
				t.Errorf("%d requests, step times x %g: %d pairs, failed %d, not judged %d", n, slower, pairs, failed, unjudged)
			}
		}
	}
}
