package run

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/tacho-bench/tacho/internal/search"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

// SweepSeconds is the default duration of a level in a sweep.
const SweepSeconds = 30

// HasLevelSize reports whether the plan sets the time or the requests of a level.
func HasLevelSize(p *plan.Plan) bool {
	return slices.ContainsFunc([]string{"num-prompts", "max-seconds", "sweep-num-prompts-factor"}, p.Given)
}

// timeSweep sets a time limit for the levels of a sweep if the plan has no
// limit.
func timeSweep(p *plan.Plan, say func(string)) {
	if p.Swept() == "" || HasLevelSize(p) {
		return
	}
	p.MaxSeconds = SweepSeconds
	say(fmt.Sprintf("Each level of the sweep takes %d s. Change this with --max-seconds or --num-prompts.", SweepSeconds))
}

// sweeps yields the levels of a sweep for each combination of the lists.
func (c *chooser) sweeps(ctx context.Context) iter.Seq2[*levelRun, error] {
	return func(yield func(*levelRun, error) bool) {
		swept := c.r.Asked.Swept()
		for _, l := range c.r.Asked.Levels() {
			if l.Repeat > 1 {
				continue // each level is repeated when it is found
			}
			if !c.sweep(ctx, swept, l, yield) {
				return
			}
		}
	}
}

// sweep yields the levels of an option while all other options are fixed. It reports
// whether the run continues.
func (c *chooser) sweep(ctx context.Context, swept string, base plan.Level, yield func(*levelRun, error) bool) bool {
	rest := base.Coordinates.Without(swept)
	s := search.Sweep{Points: c.r.Asked.SweepPoints, First: 1, Whole: swept == "max-concurrency"}
	if s.Whole {
		s.Most = float64(base.Prompts) // concurrency cannot exceed the number of requests
	}
	if base.Plan.PromptsFactor > 0 {
		s.Most = 0
	}
	times := max(c.r.Asked.Repeat, 1)
	before := c.measured(swept, rest)
	for _, load := range slices.Sorted(maps.Keys(before)) {
		if len(before[load]) == times {
			s.Add(average(load, before[load]))
		}
	}
	if !s.Whole && len(before) == 0 {
		seconds, err := c.r.pilot(ctx, base)
		if err != nil {
			return yield(nil, err)
		}
		s.First = 1 / seconds
		c.r.say("One request takes %s on the idle server, so the sweep starts at %s requests/s.", metric.Duration(1e3*seconds), metric.Setting(s.First))
	}
	for load, ok := s.Next(); ok; load, ok = s.Next() {
		at := append(slices.Clone(rest), outcome.Coordinate{Name: swept, Value: strconv.FormatFloat(load, 'f', -1, 64)})
		for again := range times {
			if !c.point(at, again, times, yield) {
				return false
			}
		}
		s.Add(average(load, c.measured(swept, rest)[load]))
	}
	if !s.Saturated() && !s.FellBehind() {
		c.r.say("The sweep ended before saturation. Raise --sweep-points.")
	}
	return true
}

// point yields a level of a sweep unless it was measured before.
func (c *chooser) point(at outcome.Coordinates, again, times int, yield func(*levelRun, error) bool) bool {
	repeat, index := 0, 0
	if times > 1 {
		repeat = again + 1
	}
	for _, p := range c.past {
		if index = max(index, p.Index+1); slices.Equal(p.Coordinates, at) && p.Repeat == repeat {
			return true
		}
	}
	l, err := c.r.Asked.At(index, at)
	if err != nil {
		return yield(nil, err)
	}
	if repeat > 0 {
		l.SetRepeat(repeat)
	}
	return c.yield(yield, l)
}

// measured returns the results for each load of an option while all other
// options are fixed.
func (c *chooser) measured(swept string, rest outcome.Coordinates) map[float64][]search.Seen {
	out := map[float64][]search.Seen{}
	for _, p := range c.past {
		if slices.Equal(p.Coordinates.Without(swept), rest) {
			load := loadOf(p.Coordinates, swept)
			out[load] = append(out[load], p.Seen)
		}
	}
	return out
}

// average averages the repeats of a load.
func average(load float64, all []search.Seen) search.Seen {
	out := search.Seen{Load: load, Failed: true}
	n := float64(len(all))
	for _, s := range all {
		out.Throughput += s.Throughput / n
		out.Latency += s.Latency / n
		out.Failed = out.Failed && s.Failed
	}
	return out
}

// pilotRequests is the number of sequential requests that measure the service
// time.
const pilotRequests = 3

// pilot returns the duration of a request on the idle server in seconds.
func (r *Runner) pilot(ctx context.Context, l plan.Level) (float64, error) {
	l.Rate, l.Concurrency = math.Inf(1), 1
	if err := r.enter(ctx, l); err != nil {
		return 0, err
	}
	s, err := r.prepare(ctx, l)
	if err != nil {
		return 0, err
	}
	sum, err := r.executor().aside(ctx, s, "pilot", pilotRequests, 1)
	if err != nil {
		return 0, err
	}
	if sum.Completed == 0 {
		f := sum.Failures[0]
		return 0, fmt.Errorf("all requests before the sweep failed (%s): %s", f.Cause, f.Example)
	}
	return float64(r.Speed()) * sum.Classic(metric.E2EL).Mean / 1e3, nil
}
