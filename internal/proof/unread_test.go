package proof_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/predict"
	"github.com/tacho-bench/tacho/internal/route"
	"github.com/tacho-bench/tacho/sim/step"
	"github.com/tacho-bench/tacho/workload"
)

// A computed run does not generate unused token ids, and the results are the
// same as with them.
func TestUnreadIDsChangeNothing(t *testing.T) {
	p := must.Get(step.Load("vllm-8b-h100"))(t)
	p.KV.Blocks = 900 // small, so that the cache evicts blocks
	for _, o := range []workload.Options{
		{Prefix: 0}, {Prefix: 100}, {Prefix: 256, Prefixes: 7}, {Prefix: 250, Prefixes: 4, Zipf: 1},
	} {
		o.Seed, o.Count, o.IDs, o.IgnoreEOS, o.Vocab = 3, 300, true, true, 30000
		o.Input, o.Output = workload.Fixed(200), workload.Fixed(40)
		o.InRatio = 0.5
		t.Run(fmt.Sprint(o.Prefix, o.Prefixes), func(t *testing.T) {
			var records [2][]*tacho.Record
			var shares [2]*float64
			for i, unread := range []bool{false, true} {
				o.Placeholders = unread
				records[i], shares[i] = computedOf(t, p, o)
			}
			if !reflect.DeepEqual(records[0], records[1]) || !reflect.DeepEqual(shares[0], shares[1]) {
				t.Errorf("records differ, or the share of what is alike: %v and %v", *shares[0], *shares[1])
			}
			cached := 0
			for _, r := range records[1] {
				cached += r.Usage.Cached
			}
			if (cached > 0) != (o.Prefix > 0) {
				t.Errorf("%d tokens were found in the cache", cached)
			}
		})
	}
}

// computedOf returns the records of such a workload and the fraction of shared
// prompt tokens.
func computedOf(t *testing.T, p step.Profile, o workload.Options) ([]*tacho.Record, *float64) {
	t.Helper()
	kind := must.Get(workload.Find("random"))(t)
	work := must.Get(kind.New(t.Context(), o))(t)
	least := must.Get(route.Find("least-loaded"))(t)
	fleet := must.Get(predict.NewFleet(predict.FleetPlan{Profile: p, Replicas: 3, Policy: least, Seed: fleetSeed, RouteSeed: fleetSeed}))(t)
	var sharing workload.Sharing
	out := &kept{}
	l := load{requests: o.Count, perSecond: 40}
	stage := predict.Stage{Arrivals: l.arrivals(), Source: sharing.Watch(work), Server: fleet, BlockTokens: p.KV.BlockTokens}
	must.Do(t, predict.Run(t.Context(), stage, out))
	return out.all, sharing.Share()
}
