package search

import (
	"math"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

func TestParseSLO(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"ttft:p99<500ms", "TTFT p99 < 500 ms"},
		{" ttft:p99 < 0.5s , tpot:p95<50 ", "TTFT p99 < 500 ms, TPOT p95 < 50 ms"},
		{"ttft.p99.9<=1s", "TTFT p99.9 < 1000 ms"},
		{"e2el:median<2s,error<0.1%", "E2EL p50 < 2000 ms, failed requests < 0.1%"},
		{"tpot:mean<40ms", "mean TPOT < 40 ms, failed requests < 1%"},
		{"stream_rate:p5>20", "STREAM_RATE p5 > 20 tok/s"},
		{"failures<0.01", "failed requests < 1%"},
	} {
		goals, err := ParseSLO(c.text)
		if got := New(Rate, goals).slo(); err != nil || got != c.want {
			t.Errorf("%q: %q, %v; want %q", c.text, got, err, c.want)
		}
	}
}

func TestParseSLOSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "no limits given"},
		{"ttft:p99", "< or > is missing"},
		{"ttft<500ms", "use ttft.mean or ttft.p99"},
		{"ttfp:p99<500ms", `did you mean "ttft"`},
		{"ttft:p101<500ms", "is not a known statistic"},
		{"ttft:99<500ms", "is not a known statistic"},
		{"ttft:p99<-5ms", "must be above 0"},
		{"ttft:p99>500ms", "write < in place of >"},
		{"user_speed:p5<20", "write > in place of <"},
		{"ttft:p99<fast", "is not a limit"},
		{"error>1%", "error<0.1%"},
		{"error<2", "use a number in %, such as 5%"},
		{"error:p99<1%", "is a single number per level"},
		{"ttft:p99<+10%", "relative to another run"},
		{"output_throughput>5", "no request keeps or misses it"},
	} {
		if _, err := ParseSLO(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q", c.text, err, c.want)
		}
	}
}

// A failed request is infinitely slow, and so are all its gaps.
func TestFailedRequestsAreInfinitelySlow(t *testing.T) {
	bad := &tacho.Record{Failure: &tacho.Failure{Cause: tacho.Status}, Asked: 5, Timeline: tacho.NewTimeline(0)}
	for _, c := range []struct {
		slo    string
		values int
		miss   bool
	}{
		{"ttft:p99<500ms", 1, true},
		{"itl:p99<50ms", 4, true},
		{"stream_rate:p5>20", 1, true},
		{"error<1%", 1, true},
		{"tpot:mean<40ms", 0, false},
	} {
		goals := must.Get(ParseSLO(c.slo))(t)
		n, miss := 0, true
		goals[0].values(bad, func(v float64) { n++; miss = miss && goals[0].misses(v) })
		if n != c.values || c.miss && !miss {
			t.Errorf("%s: a failed request has %d values, missing: %v; want %d", c.slo, n, miss, c.values)
		}
	}
	if slo, ok := (Goal{Metric: metric.TTFT, Limit: 500}).PerRequest(); !ok || slo.LimitMillis != 500 {
		t.Errorf("goodput of a goal: %v, %v", slo, ok)
	}
	if got := quantile([]float64{1, 2, math.Inf(1)}, 0.99); !math.IsInf(got, 1) {
		t.Errorf("p99 with a failed request is %v", got)
	}
}
