package run_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// watchedRun runs a plan and calls running during each level.
func watchedRun(t *testing.T, p plan.Plan, running func(r *run.Runner, level int)) result {
	t.Helper()
	var out result
	var r *run.Runner
	held := 0
	hold := func(context.Context) (time.Duration, error) {
		held++
		go running(r, held)
		if held == 2 {
			time.Sleep(9 * time.Second)
			return 9 * time.Second, nil
		}
		return 0, nil
	}
	r = must.Get(run.Open(t.Context(), p, run.Env{Dial: network.Dial, Hold: hold, Observer: &out}))(t)
	defer r.Close()
	if out.err = r.Run(t.Context(), &out.records); out.err != nil {
		t.Fatal(out.err)
	}
	if r.EndLevel() {
		t.Error("a level can be ended after the run")
	}
	return out
}

func hasReason(s *metric.Summary, code string) bool {
	return slices.ContainsFunc(s.Verdict.Reasons, func(r metric.Reason) bool { return r.Code == code })
}

// A level that the user ends sends no more requests, keeps those in flight, says so, and
// counts the requests that were due before its end, as with --max-seconds. The next level
// is complete.
func TestEndLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, _ := serve(t, nil)
		p := planFor(url, func(p *plan.Plan) {
			p.NumPrompts, p.RandomOutputLen, p.Burstiness, p.MaxConcurrency = 600, workload.Fixed(20), 1e9, 1
			list(p, "request-rate", "100,20")
		})
		out := watchedRun(t, p, func(r *run.Runner, level int) {
			if level == 1 {
				time.Sleep(3 * time.Second)
				for range 2 { // the second call changes nothing
					if !r.EndLevel() {
						t.Error("no level to end")
					}
				}
			}
		})
		first, second := &out.summaries[0], &out.summaries[1]
		if u := first.Unsent(); u.Planned != 600 || u.Total() != 600-first.Requests || u.Due != first.Config.Unsent {
			t.Errorf("600 planned, %d sent: %+v", first.Requests, u)
		}
		if all := first.Requests + first.Config.Unsent; first.Canceled+first.Failed > 0 || all < 295 || all > 305 || first.Config.Unsent < 100 {
			t.Errorf("%d sent, %d never sent, %d canceled, %d failed; want 300 due in 3 s", first.Requests, first.Config.Unsent, first.Canceled, first.Failed)
		}
		if !hasReason(first, "ended-early") || !hasReason(first, "unsent") || hasReason(first, "paused") {
			t.Errorf("%+v", first.Verdict)
		}
		if second.Requests != 600 || hasReason(second, "ended-early") || !hasReason(second, "paused") {
			t.Errorf("the next level has %d requests: %+v", second.Requests, second.Verdict)
		}
	})
}
