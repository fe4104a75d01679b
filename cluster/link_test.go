package cluster_test

import (
	"testing"

	"tacho/cluster"
	"tacho/plan"
)

// An agent that is cut off goes on; when the link is there again, nothing is
// missing and nothing is there twice.
func TestCutLink(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		p.join(t, "near", nil)
		k, far := p.newLink()
		p.join(t, "far", func(o *cluster.AgentOptions) { o.Access = far })
		url, got := p.serve(t)
		c := p.lead(t, 2, nil)
		got.after(t, 15, func() { k.set(true) })
		got.after(t, 90, func() { k.set(false) })
		out := p.execute(t.Context(), planFor(url, func(q *plan.Plan) { q.RequestRate, q.NumPrompts = 30, 90 }), c)
		whole(t, out, got, 90)
		if n := len(out.levels[0].Summary.Config.Agents); n != 2 {
			t.Errorf("%d agents", n)
		}
	})
}
