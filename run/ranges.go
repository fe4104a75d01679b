package run

import (
	"context"
	"slices"
	"strconv"

	"tacho/metric"
	"tacho/predict"
)

// ranges computes the level again with the parameters of its engines drawn from
// their standard errors, and notes how far what is predicted goes apart. Where no
// parameter has one it does nothing.
func (r *Runner) ranges(ctx context.Context, s *level, made *predict.FleetPlan, sum *metric.Accumulator) error {
	draws := r.Plan.Draws
	if draws == 0 || r.Drawn > 0 || !fitted(made.Engines) {
		return nil
	}
	all := sum.Summary(s.config)
	likely := figures(&all)
	drawn := make([][]float64, len(likely))
	defer func() { r.Drawn = 0 }()
	for k := range draws {
		r.Drawn = k + 1
		one, err := r.drawn(ctx, s)
		if err != nil {
			return err
		}
		for i, f := range figures(one) {
			drawn[i] = append(drawn[i], f.value)
		}
	}
	s.config.Draws = draws
	for i, f := range likely {
		all := slices.Sorted(slices.Values(drawn[i]))
		outside := len(all) / 20 // on either side
		s.config.Ranges = append(s.config.Ranges, metric.Range{
			Name: f.name, Value: f.value, Low: min(f.value, all[outside]), High: max(f.value, all[len(all)-1-outside]),
		})
	}
	return nil
}

// fitted says whether any number of the engines has a standard error.
func fitted(engines []predict.Engine) bool {
	return slices.ContainsFunc(engines, func(e predict.Engine) bool { return len(e.Profile.Errors) > 0 })
}

// Fitted says whether any number of the engines that are computed has a standard
// error, so that it can be drawn.
func (r *Runner) Fitted() bool {
	made, err := r.fleetPlan(&level{Level: r.Level})
	return err == nil && fitted(made.Engines)
}

// drawn is what a level comes to with the engines of this draw.
func (r *Runner) drawn(ctx context.Context, s *level) (*metric.Summary, error) {
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

// A figure is one of those that a prediction is asked for.
type figure struct {
	name  string
	value float64
}

func figures(s *metric.Summary) (out []figure) {
	for i := range metric.Sections {
		section := &metric.Sections[i]
		d := s.Dist(section.Metric)
		if !s.Config.Shows(section) || d.Stats == nil {
			continue
		}
		out = append(out, figure{"Mean " + section.Label + " (ms)", d.Stats.Mean})
		for _, p := range s.Config.Percentiles {
			out = append(out, figure{"P" + strconv.FormatFloat(p, 'g', -1, 64) + " " + section.Label + " (ms)", d.Stats.At(p).Value})
		}
	}
	if t := s.Throughput; t != nil {
		out = append(out, figure{"Request throughput (req/s)", t.RequestsPerS}, figure{"Output token throughput (tok/s)", t.OutputTokensPerS})
	}
	return out
}
