package run

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/internal/predict"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/sim/step"
)

// ranges computes the level again with engine parameters drawn from their
// standard errors, and adds the error of levels held out of the fit. If no
// parameter has a standard error, ranges does nothing.
func (r *Runner) ranges(ctx context.Context, s *level, made *predict.FleetPlan, sum *metric.Accumulator) error {
	draws := r.Plan.Draws
	if draws == 0 || len(made.Profile.Errors) == 0 {
		return nil
	}
	all := sum.Summary(s.config)
	likely := figures(&all)
	errors := allowance{&made.Profile, predict.Outside(&made.Profile, &all, made.Replicas)}
	if errors.suffices() {
		draws = 0
	}
	drawn := make([][]float64, len(likely))
	defer func() { r.drawn = 0 }()
	for k := range draws {
		r.drawn = k + 1
		one, err := r.computeDrawn(ctx, s)
		if err != nil {
			return err
		}
		for i, f := range figures(one) {
			drawn[i] = append(drawn[i], f.value)
		}
	}
	s.config.Draws, s.config.RangesCover = draws, errors.String()
	for i, f := range likely {
		s.config.Ranges = append(s.config.Ranges, rangeOf(f, slices.Sorted(slices.Values(drawn[i])), errors.of(f.quantity)))
	}
	return nil
}

// rangeOf returns the range in which 90 % of measured values are expected: the
// wider of the draws and the held-out error, which is half of a range on a
// logarithmic scale. The held-out error includes the parameter error, so the
// two are not added.
func rangeOf(f figure, drawn []float64, heldOut float64) metric.Range {
	low, high := f.value, f.value
	if outside := len(drawn) / 20; len(drawn) > 0 { // on each side
		low, high = min(low, drawn[outside]), max(high, drawn[len(drawn)-1-outside])
	}
	if f.value > 0 {
		low = f.value * math.Exp(-max(math.Log(f.value/max(low, f.value/mostApart)), heldOut))
		high = f.value * math.Exp(max(math.Log(high/f.value), heldOut))
	}
	return metric.Range{Name: f.name, Value: f.value, Low: low, High: high}
}

// mostApart is the largest reported factor between a value and a draw, because
// a draw of 0 has no logarithm.
const mostApart = 1e6

// An allowance describes how far predictions of an engine were off for held-out
// runs.
type allowance struct {
	engine  *step.Profile
	outside []string // how the level differs from the levels the engine was fitted to
}

// known reports whether the engine has held-out errors.
func (a *allowance) known() bool { return a.engine.HeldOutErrors.Levels > 0 }

// suffices reports whether the held-out error alone gives the range. This is
// the case if the load is similar to the fitted loads, because the held-out
// error includes the parameter error.
func (a *allowance) suffices() bool { return a.known() && len(a.outside) == 0 }

// of returns half of the range of a quantity on a logarithmic scale.
func (a *allowance) of(quantity string) float64 {
	return predict.Allowance(a.engine, quantity, len(a.outside) > 0)
}

func (a *allowance) String() string {
	switch {
	case !a.known():
		return "parameter draws only, because the profile has no held-out errors"
	case len(a.outside) > 0:
		return "parameter draws and the largest error of a held-out run, because the profile was not fitted to " + strings.Join(a.outside, ", ")
	}
	return "error of held-out runs"
}

// computeDrawn computes the level with the engine parameters of one draw.
func (r *Runner) computeDrawn(ctx context.Context, s *level) (*metric.Summary, error) {
	made, fleet, err := r.fleet(s)
	if err != nil {
		return nil, err
	}
	sum := s.computed()
	if err := predict.Run(ctx, r.virtualStage(s, &made, fleet), sum); err != nil {
		return nil, err
	}
	out := sum.Summary(s.config)
	return &out, nil
}

// A figure is a predicted value.
type figure struct {
	name     string
	value    float64
	quantity string // name in held-out errors
}

func figures(s *metric.Summary) (out []figure) {
	for i := range metric.Sections {
		section := &metric.Sections[i]
		d := s.Dist(section.Metric)
		if !s.Config.Shows(section) || d.Stats == nil {
			continue
		}
		out = append(out, figure{"Mean " + section.Label + " (ms)", d.Stats.Mean, predict.Quantity(section.Metric, 0)})
		for _, p := range s.Config.Percentiles {
			out = append(out, figure{"P" + strconv.FormatFloat(p, 'g', -1, 64) + " " + section.Label + " (ms)", d.Stats.At(p).Value, predict.Quantity(section.Metric, p)})
		}
	}
	if t := s.Throughput; t != nil {
		out = append(out,
			figure{"Request throughput (req/s)", t.RequestsPerS, predict.QuantityThroughput},
			figure{"Output token throughput (tok/s)", t.OutputTokensPerS, predict.QuantityThroughput})
	}
	return out
}
