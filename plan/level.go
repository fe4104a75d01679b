package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/pace"
	"github.com/tacho-bench/tacho/workload"
)

// A Level is one combination of values of all lists in a plan.
type Level struct {
	Index       int                 // in coordinate order; also the level's name in files
	Repeat      int                 // number of the repeat, from 1; 0 if the level runs once
	Coordinates outcome.Coordinates // its value of each option given as a list
	Plan        Plan                // the plan of this level: every option has one value
	Prompts     int                 // requests or conversations; 0 means unlimited
	Inputs      int                 // prompts in these requests: more than Prompts if a request takes several
	Rate        float64             // requests per second; +Inf sends everything immediately
	Concurrency int                 // 0 means unlimited
	Draw        uint64              // selects the random arrivals
	Name        string              // its coordinates as flags
	Value       string              // its coordinates, short
}

// Levels returns the levels of the plan in order: one level for each
// combination of list values. An option set to sweep counts as one value, 1.
func (p *Plan) Levels() []Level {
	out, _ := p.levels() // Validate reports the error
	return out
}

func (p *Plan) levels() ([]Level, error) {
	axes := p.axes()
	n := max(p.Repeat, 1)
	for _, a := range axes {
		if n *= len(a.values); n > maxLevels {
			return nil, fmt.Errorf("more than %d levels: shorten the lists", maxLevels)
		}
	}
	var out []Level
	at := make(outcome.Coordinates, len(axes))
	for i := range n {
		rest := i / max(p.Repeat, 1)
		for k, a := range slices.Backward(axes) {
			at[k] = outcome.Coordinate{Name: a.name, Value: a.values[rest%len(a.values)]}
			rest /= len(a.values)
		}
		l, err := p.At(i, slices.Clone(at))
		if err != nil {
			return nil, err
		}
		if p.Repeat > 1 {
			l.SetRepeat(i%p.Repeat + 1)
		}
		out = append(out, l)
	}
	return out, nil
}

// At returns the level with the given coordinates.
func (p *Plan) At(index int, at outcome.Coordinates) (Level, error) {
	one, err := p.With(at)
	l := Level{Index: index, Coordinates: at, Plan: one, Rate: one.RequestRate, Concurrency: one.MaxConcurrency, Inputs: one.NumPrompts}
	if one.PromptsFactor > 0 && l.Concurrency > 0 {
		l.Inputs = one.PromptsFactor * l.Concurrency
	} else if (one.MaxSeconds > 0 || one.OwnTimes()) && !one.Given("num-prompts") {
		l.Inputs = 0 // the time limit or the trace ends the run
	}
	l.Prompts = one.requests(l.Inputs)
	var names, values []string
	for _, c := range at {
		names, values = append(names, "--"+c.Name+" "+c.Value), append(values, c.Value)
	}
	l.Name, l.Value = strings.Join(names, " "), strings.Join(values, " ")
	return l, err
}

// SetRepeat marks the level as repeat n of several equal levels.
func (l *Level) SetRepeat(n int) {
	l.Repeat = n
	l.Name = strings.TrimSpace(fmt.Sprintf("%s repeat %d", l.Name, n))
	l.Value = strings.TrimSpace(fmt.Sprintf("%s #%d", l.Value, n))
}

// requests returns the number of requests needed for this many prompts.
func (p *Plan) requests(prompts int) int {
	kind, err := workload.Find(p.DatasetName)
	if err != nil || len(p.Mix) > 0 {
		return prompts
	}
	return kind.Requests(&p.Dataset, prompts)
}

// Varies returns the names of all options given as lists.
func (p *Plan) Varies() string {
	var names []string
	for _, a := range p.axes() {
		names = append(names, a.name)
	}
	if p.Repeat > 1 {
		names = append(names, "repeat")
	}
	return strings.Join(names, " ")
}

// Pacing returns the arrival process of a level.
func (p *Plan) Pacing(l Level, seed uint64) pace.Options {
	o := pace.Options{
		Rate: l.Rate, Shape: p.Burstiness, Count: max(l.Prompts, 0), Limited: l.Concurrency > 0, Ramp: p.RampUpStrategy, Seed: seed,
	}
	if n := math.Round(l.Rate * float64(p.MaxSeconds)); n >= 1 && n < defaultMax && (o.Count == 0 || n < float64(o.Count)) {
		o.Count, o.Within = int(n), float64(p.MaxSeconds) // limited by time: the offered load is the rate, for any random arrivals
	}
	if p.RampUpStartRPS != nil {
		o.RampStart = *p.RampUpStartRPS
	}
	if p.RampUpEndRPS != nil {
		o.RampEnd = *p.RampUpEndRPS
	}
	return o
}

// Config returns the settings for the summary of a level.
func (p *Plan) Config(l Level) (metric.Config, error) {
	c := metric.Config{Burstiness: p.Burstiness, MaxConcurrency: l.Concurrency, SteadyThreshold: p.SteadyThreshold, NoSteady: p.NoSteadyState, StallMillis: p.StallThreshold, GPUPrice: p.GPUPrice, GPUs: float64(p.GPUs.Count())}
	if c.GPUPrice > 0 && c.GPUs == 0 && len(p.GPUMetricsURL) == 0 && !p.Virtual {
		return c, errors.New("--gpu-price needs the number of GPUs, as in --gpus 8xH100")
	}
	if math.IsInf(p.Burstiness, 1) {
		c.Burstiness = 0
	}
	if p.Given("steady-state-min-window") {
		c.SteadyMinS = new(float64(p.SteadyMinWindow))
	}
	if !math.IsInf(l.Rate, 1) && p.RampUpStrategy == "" {
		c.RequestRate = l.Rate
	}
	for name := range strings.SplitSeq(cmp.Or(p.PercentileMetrics, strings.Join(metric.DefaultConfig().Metrics, ",")), ",") {
		if name = strings.TrimSpace(name); name != "" {
			c.Metrics = append(c.Metrics, name)
		}
	}
	if err := p.percentiles(&c); err != nil {
		return c, err
	}
	for _, text := range p.Goodput {
		slos, err := metric.ParseSLOs(text)
		if err != nil {
			return c, fmt.Errorf("--goodput: %w", err)
		}
		c.Goodput = append(c.Goodput, slos...)
	}
	if err := p.slo(&c); err != nil {
		return c, err
	}
	return c, c.Validate()
}

// slo sets the SLO of each level and adds its percentiles to the report.
func (p *Plan) slo(c *metric.Config) error {
	c.SLO = p.SLO
	if p.SLO == "" {
		return nil
	}
	goals, err := metric.ParseSLO(p.SLO)
	if err != nil {
		return fmt.Errorf("--slo: %w", err)
	}
	for _, g := range goals {
		if !slices.Contains([]float64{0, 50, 90, 95}, g.P) && !slices.Contains(c.Percentiles, g.P) {
			c.Percentiles = append(c.Percentiles, g.P)
		}
	}
	return nil
}

// percentiles sets the percentiles of the report and of the table of levels.
func (p *Plan) percentiles(c *metric.Config) (err error) {
	if c.Percentiles, err = percentilesOf("metric-percentiles", p.MetricPercentiles); err != nil || p.SweepPercentiles == "" {
		return err
	}
	c.TablePercentiles, err = percentilesOf("sweep-summary-percentiles", p.SweepPercentiles)
	for _, f := range c.TablePercentiles {
		if !slices.Contains(c.Percentiles, f) {
			c.Percentiles = append(c.Percentiles, f)
		}
	}
	return err
}

// percentilesOf parses the percentile list of an option.
func percentilesOf(option, list string) (out []float64, err error) {
	for text := range strings.SplitSeq(list, ",") {
		f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return nil, fmt.Errorf("--%s: %q is not a number", option, text)
		}
		out = append(out, f)
	}
	return out, nil
}
