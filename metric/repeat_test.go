package metric_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
)

// repeated returns runs of 400 requests each with a mean TTFT of 50 ms, plus shift(i) in run i.
func repeated(rng *rand.Rand, runs int, shift func(i int) float64) []*metric.Summary {
	var out []*metric.Summary
	for run := range runs {
		var records []*tacho.Record
		more := shift(run)
		for i := range 400 {
			sent := time.Duration(i) * 50 * ms
			first := sent + time.Duration((50+more+10*rng.NormFloat64())*1e6)
			records = append(records, request(sent, first, first+100*ms))
		}
		s := sumUp(metric.DefaultConfig(), records...)
		out = append(out, &s)
	}
	return out
}

func spreadNamed(t *testing.T, r *metric.Repeats, figure string) metric.Spread {
	t.Helper()
	for _, s := range r.Spreads {
		if s.Figure == figure {
			return s
		}
	}
	t.Fatalf("no %s among %+v", figure, r.Spreads)
	return metric.Spread{}
}

// If only random variation differs, runs differ by as much as their intervals say. If something changes
// between runs, they differ by more, and the text says so.
func TestRepeats(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	wrong := 0
	for range 60 {
		s := spreadNamed(t, metric.Repeated(repeated(rng, 5, func(int) float64 { return 0 })), "mean TTFT")
		if s.Larger == metric.Between {
			wrong++
		}
		if s.Runs != 5 || s.Within == nil || math.Abs(*s.Within-0.5) > 0.25 || s.Min > s.Mean || s.Max < s.Mean || *s.Interval.Low > s.Mean || *s.Interval.High < s.Mean {
			t.Fatalf("%+v, want a deviation within a run of about 0.5 ms", s)
		}
	}
	if wrong > 9 {
		t.Errorf("%d of 60 equal runs are said to differ", wrong)
	}
	r := metric.Repeated(repeated(rng, 5, func(i int) float64 { return 4 * float64(i) }))
	if s := spreadNamed(t, r, "mean TTFT"); s.Larger != metric.Between || math.Abs(s.Std-6.3) > 1.5 {
		t.Errorf("4 ms slower in each run: %+v", s)
	}
	if words := r.Words(); !strings.Contains(words, "more than") || !strings.Contains(words, "mean TTFT") || strings.Contains(words, "mean TPOT") {
		t.Errorf("words: %s", words)
	}
	if r := metric.Repeated(repeated(rng, 1, func(int) float64 { return 0 })); r != nil {
		t.Errorf("one run: %+v", r)
	}
}
