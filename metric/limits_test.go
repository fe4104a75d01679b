package metric_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/metric"
)

// TestParseSLOs checks that every form of a limit gives the same condition.
func TestParseSLOs(t *testing.T) {
	ttft, gaps := metric.SLO{Metric: "ttft", LimitMillis: 500}, metric.SLO{Metric: "itl", LimitMillis: 50, Percentile: 99}
	for text, want := range map[string][]metric.SLO{
		"ttft:500": {ttft}, "ttft:500ms": {ttft}, "ttft:0.5s": {ttft}, "ttft<500ms": {ttft}, "ttft<=500": {ttft}, "TTFT:500": {ttft}, "time_to_first_token:500": {ttft},
		"itl.p99:50": {gaps}, "itl:p99<50ms": {gaps}, "itl.p99<0.05s": {gaps},
		"ttft:500ms,itl.p99:50ms": {ttft, gaps}, "ttft:500 itl.p99:50": {ttft, gaps},
		"stream_rate:20": {{Metric: "stream_rate", LimitMillis: 20}}, "stream_rate>20": {{Metric: "stream_rate", LimitMillis: 20}},
	} {
		got, err := metric.ParseSLOs(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		"": "no limits", "ttft": "NAME:LIMIT", "ttft:fast": "in ms", "tfft:500": `did you mean "ttft"`, "ttft>500ms": "use <", "stream_rate<20": "use >",
		"ttft.p99<500ms": "--slo limits percentiles", "itl.p0:5": "not a percentile",
	} {
		if _, err := metric.ParseSLOs(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestConditionsAcceptEveryForm checks that --slo and --fail-if accept the same
// names.
func TestConditionsAcceptEveryForm(t *testing.T) {
	for _, text := range []string{"ttft.p99>500ms", "ttft:p99>500ms", "ttft.p99>0.5s", "ttft:p99>500", "time_to_first_token.p99>500ms"} {
		got, err := metric.ParseConditions(text)
		if err != nil || got[0].Name != "ttft.p99" || got[0].Limit != 500 {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"error<1%", "errors<0.01", "failures<1%", "failed<1%"} {
		got, err := metric.ParseConditions(text)
		if err != nil || got[0].Name != "failures" || got[0].Limit != 1 {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
}
