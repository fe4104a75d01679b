package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tacho/metric"
	"tacho/outcome"
	"tacho/pace"
	"tacho/workload"
)

// A Level is a point in the space of all lists of a plan.
type Level struct {
	Index       int                 // in the order of the coordinates; it is its name in files
	Repeat      int                 // which of several repeats it is, from 1; 0 where there is only one
	Coordinates outcome.Coordinates // its value of each option that is a list
	Plan        Plan                // what is done there: no option has several values
	Prompts     int                 // requests, or conversations; 0 is no end
	Inputs      int                 // the prompts in them: more, where a request takes several
	Rate        float64             // +Inf is all at once
	Concurrency int                 // 0 is no limit
	Draw        uint64              // which draw of its arrivals it takes
	Name        string              // what sets it apart, as flags
	Value       string              // the same, short
}

// Levels are the levels of the plan, in order. Where several options are lists,
// each combination is a level. An option that finds its own levels stands at one
// at a time.
func (p *Plan) Levels() []Level {
	out, _ := p.levels() // Validate tells
	return out
}

func (p *Plan) levels() ([]Level, error) {
	axes := p.axes()
	n := max(p.Repeat, 1)
	for _, a := range axes {
		if n *= len(a.values); n > mostLevels {
			return nil, fmt.Errorf("more than %d levels: the lists have too many values together", mostLevels)
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

// At is the level at a point.
func (p *Plan) At(index int, at outcome.Coordinates) (Level, error) {
	one, err := p.With(at)
	l := Level{Index: index, Coordinates: at, Plan: one, Rate: one.RequestRate, Concurrency: one.MaxConcurrency, Inputs: one.NumPrompts}
	if one.PromptsFactor > 0 && l.Concurrency > 0 {
		l.Inputs = one.PromptsFactor * l.Concurrency
	} else if (one.MaxSeconds > 0 || one.OwnTimes()) && !one.Given("num-prompts") {
		l.Inputs = 0 // time ends such a run, or the trace does
	}
	l.Prompts = one.requests(l.Inputs)
	var names, values []string
	for _, c := range at {
		names, values = append(names, "--"+c.Name+" "+c.Value), append(values, c.Value)
	}
	l.Name, l.Value = strings.Join(names, " "), strings.Join(values, " ")
	return l, err
}

// SetRepeat makes the level one of several that are alike.
func (l *Level) SetRepeat(n int) {
	l.Repeat = n
	l.Name = strings.TrimSpace(fmt.Sprintf("%s repeat %d", l.Name, n))
	l.Value = strings.TrimSpace(fmt.Sprintf("%s #%d", l.Value, n))
}

// requests is how many requests it takes to send so many prompts.
func (p *Plan) requests(prompts int) int {
	kind, err := workload.Find(p.DatasetName)
	if err != nil || len(p.Mix) > 0 {
		return prompts
	}
	return kind.Requests(&p.Dataset, prompts)
}

// Varies names the options that are lists.
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

// Pacing is when the sessions of a level arrive.
func (p *Plan) Pacing(l Level, seed uint64) pace.Options {
	o := pace.Options{
		Rate: l.Rate, Shape: p.Burstiness, Count: max(l.Prompts, 0), Limited: l.Concurrency > 0, Ramp: p.RampUpStrategy, Seed: seed,
	}
	if n := math.Round(l.Rate * float64(p.MaxSeconds)); n >= 1 && n < mostOfAny && (o.Count == 0 || n < float64(o.Count)) {
		o.Count, o.Within = int(n), float64(p.MaxSeconds) // time ends it: what it offers is the rate, whatever was drawn
	}
	if p.RampUpStartRPS != nil {
		o.RampStart = *p.RampUpStartRPS
	}
	if p.RampUpEndRPS != nil {
		o.RampEnd = *p.RampUpEndRPS
	}
	return o
}

// Config is what the summary of a level must know.
func (p *Plan) Config(l Level) (metric.Config, error) {
	c := metric.Config{Burstiness: p.Burstiness, MaxConcurrency: l.Concurrency, SteadyThreshold: p.SteadyThreshold, NoSteady: p.NoSteadyState, StallMillis: p.StallThreshold, GPUPrice: p.GPUPrice, GPUs: float64(p.GPUs.Count())}
	if c.GPUPrice > 0 && c.GPUs == 0 && len(p.GPUMetricsURL) == 0 && !p.Virtual {
		return c, errors.New("--gpu-price: say how many GPUs there are, as in --gpus 8xH100")
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
		slo, err := parseSLO(text)
		if err != nil {
			return c, fmt.Errorf("--goodput: %w", err)
		}
		c.Goodput = append(c.Goodput, slo)
	}
	return c, c.Validate()
}

// percentiles fills in those to report, and those of the table of all levels.
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

// percentilesOf reads the list of an option.
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

// parseSLO reads NAME:LIMIT, or NAME.pNN:LIMIT of a metric of which a request has
// many values.
func parseSLO(text string) (slo metric.SLO, err error) {
	name, limit, ok := strings.Cut(text, ":")
	if slo.LimitMillis, err = strconv.ParseFloat(limit, 64); !ok || err != nil {
		return slo, fmt.Errorf("%q should be NAME:LIMIT, as in ttft:200, in milliseconds", text)
	}
	name, percentile, ok := strings.Cut(name, ".p")
	if slo.Metric = name; !ok {
		return slo, nil
	}
	if slo.Percentile, err = strconv.ParseFloat(percentile, 64); err != nil || slo.Percentile <= 0 {
		return slo, fmt.Errorf("%q: want a percentile after the point, as in itl.p99:50", text)
	}
	return slo, nil
}
