package metric_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
)

func TestEndpoints(t *testing.T) {
	to := func(endpoint string, r *tacho.Record) *tacho.Record {
		r.Endpoint = endpoint
		return r
	}
	s := sumUp(metric.DefaultConfig(),
		to("b", success(2, 10*ms, 20*ms)), to("a", success(4, 30*ms, 40*ms)), to("a", success(1, 50*ms)),
		to("a", failure(tacho.Reset, ms, "")), to("b", failure(tacho.Canceled, ms, "")))
	want := []metric.EndpointSummary{
		{Endpoint: "a", Requests: 3, Completed: 2, Failed: 1, OutputTokens: 5},
		{Endpoint: "b", Requests: 2, Completed: 1, OutputTokens: 2},
	}
	if diff := cmp.Diff(want, s.Endpoints, cmpopts.IgnoreFields(metric.EndpointSummary{}, "Dists")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := s.Endpoints[0].Dist(metric.TTFT).Stats.Mean; got != 40 {
		t.Errorf("mean TTFT of a: %v, want 40", got)
	}
	if s := sumUp(metric.DefaultConfig(), to("a", success(1, ms))); s.Endpoints != nil {
		t.Error("one endpoint is split")
	}
}

func TestFinishesResentAndPhases(t *testing.T) {
	ended := func(reason string, attempts int) *tacho.Record {
		r := success(1, ms)
		r.Finish, r.Attempts = reason, attempts
		return r
	}
	timeout := func(phase string) *tacho.Record {
		r := failure(tacho.Timeout, time.Second, "late")
		r.Failure.Phase = phase
		return r
	}
	reset := failure(tacho.Reset, time.Second, "gone")
	reset.Failure.Phase = "stream"
	s := sumUp(metric.DefaultConfig(),
		ended("stop", 0), ended("length", 2), ended("length", 1), ended("", 0), timeout("wait"), timeout("stream"), timeout("wait"), reset)
	finishes := []metric.FinishCount{{Reason: "length", Requests: 2}, {Reason: "", Requests: 1}, {Reason: "stop", Requests: 1}}
	if diff := cmp.Diff(finishes, s.Finishes); diff != "" || s.Resent != 1 {
		t.Errorf("%d sent again, -want +got\n%s", s.Resent, diff)
	}
	failures := []metric.FailureGroup{
		{Cause: tacho.Timeout, Phase: "wait", Count: 2, FirstS: 1, Example: "late"},
		{Cause: tacho.Reset, Count: 1, FirstS: 1, Example: "gone"},
		{Cause: tacho.Timeout, Phase: "stream", Count: 1, FirstS: 1, Example: "late"},
	}
	if diff := cmp.Diff(failures, s.Failures); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestEnergyPerToken(t *testing.T) {
	s := sumUp(metric.DefaultConfig(), success(4, ms))
	if s.EnergyPerToken() != nil {
		t.Error("energy from nowhere")
	}
	a, b := 10.0, 30.0
	s.Instruments = []metric.Instruments{{EnergyJoules: &a}, {}, {EnergyJoules: &b}}
	if got := value(t, "energy", s.EnergyPerToken()); got != 10 {
		t.Errorf("%v J a token, want 10", got)
	}
}
