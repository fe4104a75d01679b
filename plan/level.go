package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"tacho/metric"
	"tacho/pace"
	"tacho/workload"
)

// A Level is the load of a plan, with one number for each list.
type Level struct {
	Index       int
	Prompts     int     // requests, or conversations; 0 is no end
	Inputs      int     // the prompts in them: more, where a request takes several
	Rate        float64 // +Inf is all at once
	Concurrency int     // 0 is no limit
	Name        string  // what sets it apart, as flags
	Value       string  // the same, short
}

// Levels are the levels of the plan, in order. Where several options are lists,
// each combination is a level.
func (p *Plan) Levels() []Level {
	limits := p.MaxConcurrency
	if len(limits) == 0 {
		limits = IntLevels{0}
	}
	prompts := p.NumPrompts
	if (p.MaxSeconds > 0 || p.OwnTimes()) && !p.Given("num-prompts") {
		prompts = IntLevels{0} // time ends such a run, or the trace does
	}
	var out []Level
	for _, rate := range p.RequestRate {
		for _, limit := range limits {
			for _, n := range prompts {
				l := Level{Index: len(out), Prompts: p.requests(n), Inputs: n, Rate: rate, Concurrency: limit}
				names, values := p.lists(l)
				for i, name := range names {
					names[i] = "--" + name + " " + values[i]
				}
				l.Name, l.Value = strings.Join(names, " "), strings.Join(values, " ")
				out = append(out, l)
			}
		}
	}
	return out
}

// requests is how many requests it takes to send so many prompts.
func (p *Plan) requests(prompts int) int {
	kind, err := workload.Find(p.DatasetName)
	if err != nil || len(p.Mix) > 0 {
		return prompts
	}
	return kind.Requests(&p.Dataset, prompts)
}

// lists are the options that are lists, with their values in a level.
func (p *Plan) lists(l Level) (names, values []string) {
	add := func(n int, name, value string) {
		if n > 1 {
			names, values = append(names, name), append(values, value)
		}
	}
	add(len(p.RequestRate), "request-rate", formatFloat(l.Rate))
	add(len(p.MaxConcurrency), "max-concurrency", strconv.Itoa(l.Concurrency))
	add(len(p.NumPrompts), "num-prompts", strconv.Itoa(l.Inputs))
	return names, values
}

// Varies names the options that are lists.
func (p *Plan) Varies() string {
	names, _ := p.lists(Level{})
	return strings.Join(names, " ")
}

// Pacing is when the sessions of a level arrive.
func (p *Plan) Pacing(l Level, seed uint64) pace.Options {
	o := pace.Options{
		Rate: l.Rate, Shape: p.Burstiness, Count: max(l.Prompts, 0), Limited: l.Concurrency > 0, Ramp: p.RampUpStrategy, Seed: seed,
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
	c := metric.Config{Burstiness: p.Burstiness, MaxConcurrency: l.Concurrency, StallMillis: p.StallThreshold, GPUPrice: p.GPUPrice, GPUs: p.GPUs.Count()}
	if c.GPUPrice > 0 && c.GPUs == 0 && len(p.GPUMetricsURL) == 0 {
		return c, errors.New("--gpu-price: say how many GPUs there are, as in --gpus 8xH100")
	}
	if math.IsInf(p.Burstiness, 1) {
		c.Burstiness = 0
	}
	if !math.IsInf(l.Rate, 1) && p.RampUpStrategy == "" {
		c.RequestRate = l.Rate
	}
	for name := range strings.SplitSeq(cmp.Or(p.PercentileMetrics, strings.Join(metric.DefaultConfig().Metrics, ",")), ",") {
		if name = strings.TrimSpace(name); name != "" {
			c.Metrics = append(c.Metrics, name)
		}
	}
	for text := range strings.SplitSeq(p.MetricPercentiles, ",") {
		f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return c, fmt.Errorf("--metric-percentiles: %q is not a number", text)
		}
		c.Percentiles = append(c.Percentiles, f)
	}
	for _, g := range p.Goodput {
		name, limit, ok := strings.Cut(g, ":")
		ms, err := strconv.ParseFloat(limit, 64)
		if !ok || err != nil {
			return c, fmt.Errorf("--goodput: %q should be NAME:LIMIT, as in ttft:200, in milliseconds", g)
		}
		c.Goodput = append(c.Goodput, metric.SLO{Metric: name, LimitMillis: ms})
	}
	return c, c.Validate()
}
