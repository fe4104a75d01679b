package run

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

// A Level is one stage of a plan: the plan with one number for each list.
type Level struct {
	Index       int
	Prompts     int     // requests, or conversations; 0 is no end
	Inputs      int     // the prompts in them: more, where a request takes several
	Rate        float64 // +Inf is all at once
	Concurrency int     // 0 is no limit
	Name        string  // what sets it apart, as flags
	Value       string  // the same, short
}

// Levels are the stages of the plan, in order: where several options are
// lists, every combination.
func (p *Plan) Levels() []Level {
	limits := p.MaxConcurrency
	if len(limits) == 0 {
		limits = IntLevels{0}
	}
	prompts := p.NumPrompts
	if (p.MaxSeconds > 0 || p.selfTimed()) && !p.Given("num-prompts") {
		prompts = IntLevels{0} // a run by time ends by time, and a trace where it ends
	}
	var out []Level
	for _, rate := range p.RequestRate {
		for _, limit := range limits {
			for _, n := range prompts {
				l := Level{Index: len(out), Prompts: n, Inputs: n, Rate: rate, Concurrency: limit}
				l.Name, l.Value = p.levelName(l)
				l.Prompts = p.requests(n)
				out = append(out, l)
			}
		}
	}
	return out
}

// requests is in how many requests so many prompts are sent.
func (p *Plan) requests(prompts int) int {
	batch := p.RandomBatchSize
	if batch < 2 || prompts < 1 || len(p.Mix) > 0 || !p.every(func(k workload.Kind) bool { return k.Batches }) {
		return prompts
	}
	if p.NoReranker && p.every(func(k workload.Kind) bool { return k.Name == "random_rerank" }) {
		prompts, batch = max(prompts-1, 1), batch-1 // the query is in every request, as one of its prompts
	}
	return (prompts + batch - 1) / batch
}

// Varies names the options that are lists.
func (p *Plan) Varies() string {
	var out []string
	for _, v := range []struct {
		name string
		n    int
	}{{"request-rate", len(p.RequestRate)}, {"max-concurrency", len(p.MaxConcurrency)}, {"num-prompts", len(p.NumPrompts)}} {
		if v.n > 1 {
			out = append(out, v.name)
		}
	}
	return strings.Join(out, " ")
}

func (p *Plan) levelName(l Level) (name, value string) {
	var names, values []string
	add := func(n int, flag, value string) {
		if n > 1 {
			names = append(names, "--"+flag+" "+value)
			values = append(values, value)
		}
	}
	add(len(p.RequestRate), "request-rate", formatFloat(l.Rate))
	add(len(p.MaxConcurrency), "max-concurrency", strconv.Itoa(l.Concurrency))
	add(len(p.NumPrompts), "num-prompts", strconv.Itoa(l.Prompts))
	return strings.Join(names, " "), strings.Join(values, " ")
}

// Pacer is when the sessions of a level arrive.
func (p *Plan) pacing(l Level, seed uint64) pace.Options {
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

// config is what the summary of a level must know.
func (p *Plan) config(l Level) (metric.Config, error) {
	c := metric.Config{Burstiness: p.Burstiness, MaxConcurrency: l.Concurrency}
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
			return c, fmt.Errorf("--goodput: %q should be NAME:MILLISECONDS, as in ttft:200", g)
		}
		c.Goodput = append(c.Goodput, metric.SLO{Metric: name, LimitMillis: ms})
	}
	return c, c.Validate()
}

// Check finds what the plan leaves open, and says what is wrong with it before
// anything is sent.
func (p *Plan) Check(say func(string)) error {
	if err := p.guessDataset(say); err != nil {
		return err
	}
	return cmp.Or(p.Validate(), p.checkFiles())
}

// Validate says what is wrong with the plan before anything is sent.
func (p *Plan) Validate() error {
	if err := p.validateRamp(); err != nil {
		return err
	}
	if p.LoraAssignment != "random" && p.LoraAssignment != "round-robin" {
		return fmt.Errorf("--lora-assignment %q: write random or round-robin", p.LoraAssignment)
	}
	if p.OnDiskFull != waitOnFullDisk && p.OnDiskFull != StopOnFullDisk {
		return fmt.Errorf("--on-disk-full %q: write %s or %s", p.OnDiskFull, waitOnFullDisk, StopOnFullDisk)
	}
	for _, n := range p.MaxConcurrency {
		if n < 1 {
			return fmt.Errorf("--max-concurrency %d: at least 1 request must be allowed", n)
		}
	}
	if err := p.validateIDs(); err != nil {
		return err
	}
	if err := p.validateDataset(); err != nil {
		return err
	}
	for _, l := range p.Levels() {
		if err := p.validateLevel(l); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) validateRamp() error {
	if p.RampUpStrategy == "" {
		if p.RampUpStartRPS != nil || p.RampUpEndRPS != nil {
			return errors.New("--ramp-up-start-rps and --ramp-up-end-rps need --ramp-up-strategy linear or exponential")
		}
		return nil
	}
	if len(p.RequestRate) != 1 || !math.IsInf(p.RequestRate[0], 1) {
		return errors.New("--ramp-up-strategy goes without --request-rate: the ramp is the rate")
	}
	if p.RampUpStartRPS == nil || p.RampUpEndRPS == nil {
		return errors.New("--ramp-up-strategy needs --ramp-up-start-rps and --ramp-up-end-rps")
	}
	return nil
}

func (p *Plan) validateLevel(l Level) error {
	if l.Prompts <= 0 && p.MaxSeconds == 0 && p.every(func(k workload.Kind) bool { return k.Endless }) {
		return fmt.Errorf("--num-prompts %d: at least 1 is needed, or --max-seconds", l.Prompts)
	}
	if math.IsInf(l.Rate, 1) && l.Concurrency == 0 && l.Prompts <= 0 && p.MaxSeconds > 0 && !p.selfTimed() {
		return errors.New("--max-seconds needs --request-rate or --max-concurrency: without either, requests without end are due at once")
	}
	if _, _, err := pace.New(p.pacing(l, 0)); err != nil {
		return err
	}
	_, err := p.config(l)
	return err
}
