package view

import (
	"math"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/metric"
)

// Every number of a run in progress is a short text, also if it is no number.
func FuzzNumbers(f *testing.F) {
	for _, v := range []float64{0, 1, -1, 99.99, 1e15, 1e300, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN()} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v float64) {
		past := live.Past{Seconds: v, RequestsPerS: v, TokensPerS: v, TTFTP99: &v, Verdict: metric.Valid}
		at := live.Snapshot{AtS: v, LeftS: &v, Share: &v, Now: live.Point{SentPerS: v, TTFT: live.Figure{P50: &v, P99: &v}, Server: &live.Server{Running: &v, KVShare: &v}}}
		at.Level.Rate = v
		for _, text := range []string{millis(&v), clock(v), PastLine(&past), Line(&at)} {
			if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, "%!") || len(text) > 400 {
				t.Errorf("%v: %q", v, text)
			}
		}
	})
}
