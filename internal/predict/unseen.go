package predict

import (
	"fmt"
	"math"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/sim/step"
	"github.com/tacho-bench/tacho/stat"
)

// quantities are the figures with prediction intervals, by their names in a
// profile.
var quantities = map[string]int{
	Quantity(metric.TTFT, 0): TTFT, Quantity(metric.TTFT, 50): ttft50, Quantity(metric.TTFT, 99): TTFT99,
	Quantity(metric.TPOT, 0): TPOT, Quantity(metric.TPOT, 99): tpot99,
	Quantity(metric.ITL, 0): ITL, Quantity(metric.ITL, 99): itl99,
	Quantity(metric.E2EL, 0): E2EL, Quantity(metric.E2EL, 99): e2el99,
	QuantityThroughput: Throughput,
}

// QuantityThroughput is the name of requests and tokens per second in a profile.
const QuantityThroughput = "throughput"

// Quantity is the name of a metric's mean or percentile in a profile. The held-out
// errors contain the median of TTFT and p99. Other percentiles use the error of p99
// above the median and of the mean below.
func Quantity(m *metric.Metric, percentile float64) string {
	switch {
	case percentile == 50 && m == metric.TTFT:
		return m.Name + " p50"
	case percentile > 50:
		return m.Name + " p99"
	}
	return m.Name
}

// heldOutErrors are the prediction errors in cross-validation.
func heldOutErrors(folds [][]Comparison) step.HeldOutErrors {
	out := step.HeldOutErrors{All: map[string]float64{}, Worst: map[string]float64{}}
	for _, levels := range folds {
		out.Levels += len(levels)
	}
	for name, figure := range quantities {
		var all mean
		worst := 0.0
		for _, levels := range folds {
			var fold mean
			for _, e := range levels {
				if p, m := e.Predicted[figure], e.Measured[figure]; p > 0 && m > 0 {
					square := math.Pow(math.Log(p/m), 2)
					fold.add(square)
					all.add(square)
				}
			}
			worst = max(worst, fold.value())
		}
		if all.n > 0 {
			out.All[name], out.Worst[name] = digits("%.3g", math.Sqrt(all.value())), digits("%.3g", math.Sqrt(worst))
		}
	}
	return out
}

// fittedTo describes the loads of levels.
func fittedTo(p *step.Profile, levels []*MeasuredLevel) step.FittedTo {
	out := step.FittedTo{MaxSequences: p.MaxSequences}
	out.InputTokens, out.OutputTokens = [2]float64{math.Inf(1), 0}, [2]float64{math.Inf(1), 0}
	for _, s := range levels {
		var input, output mean
		for _, q := range s.sent {
			input.add(float64(q.prompt))
			output.add(float64(q.output))
			out.Cached = out.Cached || q.cached > 0
		}
		in := min(s.inFlight, len(s.sent))
		if s.Limit > 0 {
			in = min(in, s.Limit)
		}
		out.InFlight = max(out.InFlight, in)
		widen(&out.InputTokens, input.value())
		widen(&out.OutputTokens, output.value())
	}
	return out
}

func widen(ends *[2]float64, x float64) {
	x = digits("%.4g", x)
	ends[0], ends[1] = min(ends[0], x), max(ends[1], x)
}

// Allowance is half the width of the range that contains 90 % of the measured
// values of a quantity, on a logarithmic scale, from the held-out errors of a
// profile. outside means that the load differs from all loads of the fit.
func Allowance(p *step.Profile, quantity string, outside bool) float64 {
	e := &p.HeldOutErrors
	if e.Levels == 0 {
		return 0
	}
	from := e.All
	if outside {
		from = e.Worst
	}
	half, ok := from[quantity]
	if !ok { // quantities without held-out errors use the worst error
		for _, x := range from {
			half = max(half, x)
		}
	}
	return half * stat.StudentQuantile(0.9, float64(e.Levels))
}

// Outside lists how a level, with a summary measured on replicas, differs from all
// loads that a profile was fitted to.
func Outside(p *step.Profile, s *metric.Summary, replicas int) (out []string) {
	f := &p.FittedTo
	if f.InFlight == 0 || s.Completed == 0 {
		return nil // the loads are unknown
	}
	if s.Peaks != nil && beyond(float64(s.Peaks.InFlight)/float64(max(replicas, 1)), float64(f.InFlight)) {
		out = append(out, fmt.Sprintf("more than %d requests in flight", f.InFlight))
	}
	n := float64(s.Completed)
	for _, l := range []struct {
		name string
		mean float64
		ends [2]float64
	}{{"prompts", float64(s.Tokens.Input) / n, f.InputTokens}, {"answers", float64(s.Tokens.Output) / n, f.OutputTokens}} {
		if beyond(l.mean, l.ends[1]) || beyond(l.ends[0], l.mean) {
			out = append(out, fmt.Sprintf("%s of %.0f tokens (%.0f to %.0f)", l.name, l.mean, l.ends[0], l.ends[1]))
		}
	}
	if !f.Cached && s.Tokens.Cached > 0 {
		out = append(out, "prompts found in the prefix cache")
	}
	if f.MaxSequences > 0 && p.MaxSequences != f.MaxSequences {
		out = append(out, fmt.Sprintf("max_sequences %d (%d)", p.MaxSequences, f.MaxSequences))
	}
	return out
}

// beyond reports whether a load is larger than the largest of the fit. A small
// excess does not count.
func beyond(x, largest float64) bool { return x > outsideFactor*largest }

const outsideFactor = 1.25
