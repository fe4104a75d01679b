//go:build real

package run_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/transport/socket"
)

// Records have timestamps of the plan's clock. With auto, the best available
// clock is used, and the run explains any fallback.
func TestRealClock(t *testing.T) {
	missing := socket.CheckWire(t.Context())
	best := tacho.WireClock
	if missing != nil {
		best = tacho.KernelClock
	}
	for name, want := range map[string]tacho.Clock{"kernel": tacho.KernelClock, "read": tacho.ReadClock, "wire": tacho.WireClock, "auto": best} {
		t.Run(name, func(t *testing.T) {
			out := loopback(t, planFor(realServer(t), func(p *plan.Plan) { p.Clock = name }))
			if name == "wire" && missing != nil {
				if out.err == nil || out.err.Error() != missing.Error() {
					t.Errorf("the error is %v, want %v", out.err, missing)
				}
				return
			}
			if out.err != nil {
				t.Fatal(out.err)
			}
			if said := slices.ContainsFunc(out.said, func(s string) bool { return strings.Contains(s, "Using kernel timestamps") }); said != (name == "auto" && missing != nil) {
				t.Errorf("it said %q", out.said)
			}
			for _, r := range out.records {
				if r.Clock != want || r.FellBack != 0 {
					t.Errorf("request %s has the %v clock, %d times fell back", r.ID, r.Clock, r.FellBack)
				}
			}
			if s := out.summaries[0]; s.Clock.Name != want.String() {
				t.Errorf("%+v", s.Clock)
			}
		})
	}
}

// realServer serves a simulated engine on a loopback socket.
func realServer(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(newSim(t, sim.Options{}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// loopback runs a plan over the kernel's network.
func loopback(t *testing.T, p plan.Plan) result {
	t.Helper()
	return executeIn(t.Context(), p, run.Env{Random: 42})
}
