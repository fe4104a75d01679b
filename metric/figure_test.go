package metric_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

// Four requests with 40 input tokens, 10 of them cached, and five output tokens, in half an hour on two
// GPUs at 3.60 an hour cost 3.60.
func TestFigures(t *testing.T) {
	sum := metric.Accumulator{Stall: 25}
	for range 4 {
		r := success(5, 30*ms, 40*ms, 60*ms, 90*ms)
		r.Usage = cached(10, true).Usage
		r.End = 1800_000 * ms
		must.Do(t, sum.Add(r))
	}
	if err := sum.Add(success(1, 30*ms)); err != nil { // has no gap and so no stall
		t.Fatal(err)
	}
	c := metric.DefaultConfig()
	c.StallMillis, c.GPUs, c.GPUPrice = 25, 2, 3.6
	joules := 42.0
	drafts := metric.Speculation{Drafts: 10, DraftTokens: 50, Accepted: 30}
	s := sum.Summary(c)
	if _, known := s.Figures["energy_per_token"]; known {
		t.Error("energy that nobody measured")
	}
	// Figures of a metrics page are the highest of all servers.
	low, high, page := map[string]float64{}, map[string]float64{}, 0
	for _, f := range metric.Figures[slices.IndexFunc(metric.Figures, func(f *metric.Figure) bool { return f.Name == metric.PageWaitingCapacity }):] {
		page++
		low[f.Name], high[f.Name] = 0.5, float64(page)
	}
	s.Conclude([]metric.Instruments{{EnergyJoules: &joules, Speculation: &drafts, More: low}, {More: high}, {}}, nil)
	want := map[string]float64{
		"cost_input": 3.6 / 170 * 1e6, "cost_output": 3.6 / 21 * 1e6, "cost_total": 3.6 / 191 * 1e6,
		"output_per_gpu": 21.0 / 3600, "total_per_gpu": 191.0 / 3600, "energy_per_token": 2,
		"prompt_cached_share": 0.25, "draft_acceptance": 0.6, "stalled_share": 1,
	}
	maps.Copy(want, high)
	near := cmp.Comparer(func(a, b float64) bool { return a/b > 1-1e-12 && a/b < 1+1e-12 })
	if diff := cmp.Diff(want, s.Figures, near); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, f := range metric.Figures {
		if _, worked := want[f.Name]; !worked || f.Title == "" || f.Doc == "" || f.Unit == "" {
			t.Errorf("%s needs a title, a unit, a doc and a value worked out here", f.Name)
		}
	}
	empty := metric.Accumulator{}
	if s := empty.Summary(c); len(s.Figures) > 0 && s.Figures["cost_total"] != 0 {
		t.Errorf("figures of nothing: %v", s.Figures)
	}
}
