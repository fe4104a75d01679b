package metric

import (
	"fmt"
	"math"
	"slices"

	"tacho"
	"tacho/internal/spelling"
	"tacho/stat"
)

// Config is what a summary must know of the plan besides the records.
type Config struct {
	RequestRate      float64   `json:"request_rate,omitempty"`              // requests per second asked for; 0 is as fast as the limit lets
	Burstiness       float64   `json:"burstiness,omitempty"`                // gamma shape of the arrivals; 0 where it means nothing
	MaxConcurrency   int       `json:"max_concurrency,omitempty"`           // 0 is no limit
	SteadyThreshold  float64   `json:"steady_state_threshold,omitempty"`    // part of MaxConcurrency from which on a closed loop is full; 0 is 0.95
	SteadyMinS       *float64  `json:"steady_state_min_window_s,omitempty"` // below which a time in balance is short; nil is a tenth of the run
	NoSteady         bool      `json:"no_steady_state,omitempty"`           // nobody wants to know when the run was in balance
	TablePercentiles []float64 `json:"table_percentiles,omitempty"`         // that the table of all levels has besides
	Goodput          []SLO     `json:"goodput,omitempty"`                   // what a good request keeps; empty reports no goodput
	Percentiles      []float64 `json:"percentiles"`                         // asked for, 0..100, in the order to print
	Metrics          []string  `json:"metrics"`                             // classic sections asked for, by their keys
	StallMillis      float64   `json:"stall_ms,omitempty"`                  // gaps between tokens beyond it are stalls; 0 is DefaultStallMillis
	GPUs             float64   `json:"gpus,omitempty"`                      // that the server runs on, on average where their number changes; 0 unknown
	GPUPrice         float64   `json:"gpu_price,omitempty"`                 // of one for an hour, in whatever currency; 0 unknown
	InputEstimated   bool      `json:"input_estimated,omitempty"`           // the workload's prompt counts are estimates
	Pools            bool      `json:"pools,omitempty"`                     // no tokens come out: the report has no place for them
	Interrupted      bool      `json:"interrupted,omitempty"`               // the run was stopped before its plan was done
	Unsent           int       `json:"unsent,omitempty"`                    // sessions that were due before the end of the level and never began
	Predicted        bool      `json:"predicted,omitempty"`                 // nobody measured it: a model computed it
	Draws            int       `json:"draws,omitempty"`                     // of the model's parameters, from which Ranges follow
	Ranges           []Range   `json:"ranges,omitempty"`                    // of what was predicted, as far as the parameters are known
	RangesCover      string    `json:"ranges_cover,omitempty"`              // what Ranges allow for, in words
	SharedShare      *float64  `json:"shared_share,omitempty"`              // of the prompt tokens, those that earlier prompts of the load begin with too; nil unknown
	RoundTripMillis  *float64  `json:"round_trip_ms,omitempty"`             // to the server and back, by a TCP handshake; nil unknown
	Client           *Client   `json:"client,omitempty"`                    // how the client itself fared; nil unknown
	Agents           []Agent   `json:"agents,omitempty"`                    // that shared the load; none where one machine sent it
	Known            []Reason  `json:"known,omitempty"`                     // what the caller knows against the run: a simulated server, a lost agent
}

// A Range is where nine of ten measured values of a figure are expected to lie, and
// the value that was predicted.
type Range struct {
	Name  string  `json:"name"` // as in a report: P99 TTFT (ms)
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// DefaultConfig is what vLLM's serving benchmark reports when told nothing.
func DefaultConfig() Config {
	return Config{Burstiness: 1, Percentiles: []float64{99}, Metrics: []string{TTFT.Name, TPOT.Name, ITL.Name}}
}

// An SLO is one condition of a good request.
type SLO struct {
	Metric      string  `json:"metric"`
	LimitMillis float64 `json:"limit_ms"`             // or in the metric's own unit
	Percentile  float64 `json:"percentile,omitempty"` // of the values that a request has of the metric, as of its gaps; 0 is every one of them
}

// keptBy says whether a request keeps the condition. One that has no value of the
// metric does: the time per output token of a single token is no reason to fail it.
func (s *SLO) keptBy(r *tacho.Record) bool {
	m := Named(s.Metric)
	if m == nil {
		return true
	}
	var values []float64
	m.Of(r, func(v float64) { values = append(values, v) })
	if s.Percentile > 0 && len(values) > 0 {
		values = []float64{stat.New(values).Quantile(s.Percentile / 100)}
	}
	return !slices.ContainsFunc(values, func(v float64) bool { return !s.kept(m, v) })
}

func (s *SLO) validate() error {
	m := Named(s.Metric)
	if m == nil || m.Unit == TokenCount {
		return spelling.Unknown("goodput metric", s.Metric, names(limits()))
	}
	if !(s.LimitMillis >= 0) || math.IsInf(s.LimitMillis, 0) {
		return fmt.Errorf("goodput %s: limit %v: want %s, 0 or more", s.Metric, s.LimitMillis, m.Unit)
	}
	if !(s.Percentile >= 0 && s.Percentile <= 100) || s.Percentile > 0 && !m.PerEvent {
		return fmt.Errorf("goodput %s: percentile %v: want a number up to 100, of a metric of which a request has many values, as itl.p99:50", s.Metric, s.Percentile)
	}
	return nil
}

// kept says whether a value of the metric is within the limit.
func (s *SLO) kept(m *Metric, v float64) bool {
	if m.MoreIsBetter {
		return v >= s.LimitMillis
	}
	return v <= s.LimitMillis
}

// Validate says what is wrong with c, and what to write instead.
func (c *Config) Validate() error {
	if !(c.RequestRate >= 0) || math.IsInf(c.RequestRate, 0) {
		return fmt.Errorf("request rate %v: want requests per second, or 0 for no pacing", c.RequestRate)
	}
	for _, p := range c.Percentiles {
		if !(p >= 0 && p <= 100) {
			return fmt.Errorf("percentile %v: want a number from 0 to 100", p)
		}
	}
	for _, name := range c.Metrics {
		if !slices.Contains(SectionKeys(), name) {
			return spelling.Unknown("percentile metric", name, SectionKeys())
		}
	}
	if !(c.SteadyThreshold >= 0 && c.SteadyThreshold <= 1) {
		return fmt.Errorf("steady-state threshold %v: want a part of the concurrency limit, above 0 and up to 1", c.SteadyThreshold)
	}
	for _, slo := range c.Goodput {
		if err := slo.validate(); err != nil {
			return err
		}
	}
	if !(c.StallMillis >= 0) || math.IsInf(c.StallMillis, 0) {
		return fmt.Errorf("stall threshold %v: want milliseconds, 0 or more", c.StallMillis)
	}
	if !(c.GPUPrice >= 0) || math.IsInf(c.GPUPrice, 0) {
		return fmt.Errorf("GPU price %v: want what one costs in an hour, 0 or more", c.GPUPrice)
	}
	return nil
}

// limits are the metrics that an SLO can be about: how long an answer is, is
// for the workload to say.
func limits() []*Metric {
	return slices.DeleteFunc(slices.Clone(All), func(m *Metric) bool { return m.Unit == TokenCount })
}

func names(metrics []*Metric) []string {
	var list []string
	for _, m := range metrics {
		list = append(list, m.Name)
	}
	return list
}
