package metric

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/spelling"
	"github.com/tacho-bench/tacho/stat"
)

// Config is the part of the plan that a summary needs besides the records.
type Config struct {
	RequestRate      float64   `json:"request_rate,omitempty"`              // configured requests per second; 0 means no pacing
	Burstiness       float64   `json:"burstiness,omitempty"`                // gamma shape of the arrivals; 0 if not applicable
	MaxConcurrency   int       `json:"max_concurrency,omitempty"`           // 0 means no limit
	SteadyThreshold  float64   `json:"steady_state_threshold,omitempty"`    // share of MaxConcurrency above which a closed loop counts as full; 0 means 0.95
	SteadyMinS       *float64  `json:"steady_state_min_window_s,omitempty"` // minimum length of a steady state; nil means a tenth of the run
	NoSteady         bool      `json:"no_steady_state,omitempty"`           // do not report the steady state
	TablePercentiles []float64 `json:"table_percentiles,omitempty"`         // additional percentiles in the table of levels
	Goodput          []SLO     `json:"goodput,omitempty"`                   // conditions of a good request; if empty, goodput is not reported
	SLO              string    `json:"slo,omitempty"`                       // limits on statistics of the level, as ParseSLO reads them
	Percentiles      []float64 `json:"percentiles"`                         // configured percentiles, 0..100, in display order
	Metrics          []string  `json:"metrics"`                             // keys of the classic sections to show
	StallMillis      float64   `json:"stall_ms,omitempty"`                  // longer gaps between tokens are stalls; 0 means DefaultStallMillis
	GPUs             float64   `json:"gpus,omitempty"`                      // GPUs of the server, or their mean number if it changes; 0 means unknown
	GPUPrice         float64   `json:"gpu_price,omitempty"`                 // price of one GPU per hour, in any currency; 0 means unknown
	InputEstimated   bool      `json:"input_estimated,omitempty"`           // the workload's prompt counts are estimates
	Pools            bool      `json:"pools,omitempty"`                     // the model generates no tokens, so the report omits them
	Interrupted      bool      `json:"interrupted,omitempty"`               // the run stopped before its plan was complete
	Planned          int       `json:"planned_sessions,omitempty"`          // sessions that the plan has for the level; 0 means unknown, as in a closed loop limited by time
	EndedEarlyS      float64   `json:"ended_early_s,omitempty"`             // when the user ended the level; 0 means that it ended as planned
	Unsent           int       `json:"unsent,omitempty"`                    // sessions that were never sent although they were due before the sending ended
	Predicted        bool      `json:"predicted,omitempty"`                 // computed by a model, not measured
	Simulated        bool      `json:"simulated,omitempty"`                 // a server was an engine of tacho sim
	Engine           string    `json:"engine,omitempty"`                    // name of the servers, as they report it ("sglang"); empty if it is unknown or they differ
	Draws            int       `json:"draws,omitempty"`                     // draws of the model's parameters, from which Ranges are computed
	Ranges           []Range   `json:"ranges,omitempty"`                    // ranges of predicted values, given the uncertainty of the parameters
	RangesCover      string    `json:"ranges_cover,omitempty"`              // the uncertainty covered by Ranges, in words
	SharedShare      *float64  `json:"shared_share,omitempty"`              // share of prompt tokens in a prefix of an earlier prompt; nil means unknown
	RoundTripMillis  *float64  `json:"round_trip_ms,omitempty"`             // round trip to the server, measured by a TCP handshake; nil means unknown
	Client           *Client   `json:"client,omitempty"`                    // condition of the client; nil means unknown
	Agents           []Agent   `json:"agents,omitempty"`                    // agents that shared the load; empty if one machine sent it
	Answers          *Answers  `json:"answers,omitempty"`                   // judgement on the answers; nil if none were kept
	Known            []Reason  `json:"known,omitempty"`                     // reasons known by the caller: a simulated server, a lost agent
}

// A Range is a predicted value and the range expected to contain nine of ten measured values.
type Range struct {
	Name  string  `json:"name"` // as in a report: P99 TTFT (ms)
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// EngineOf returns the name that all servers have, or "".
func EngineOf[S any](servers []S, name func(S) string) string {
	if len(servers) == 0 || slices.ContainsFunc(servers, func(s S) bool { return name(s) != name(servers[0]) }) {
		return ""
	}
	return name(servers[0])
}

// DefaultConfig returns the defaults of vLLM's serving benchmark.
func DefaultConfig() Config {
	return Config{Burstiness: 1, Percentiles: []float64{99}, Metrics: []string{TTFT.Name, TPOT.Name, ITL.Name}}
}

// An SLO is one condition of a good request.
type SLO struct {
	Metric      string  `json:"metric"`
	LimitMillis float64 `json:"limit_ms"`             // or in the metric's own unit
	Percentile  float64 `json:"percentile,omitempty"` // for a metric with many values per request, such as gaps: the percentile to compare; 0 means all values
}

// KeptBy reports whether a request meets the condition. A request without a value of the metric does:
// an answer of one token has no time per output token.
func (s *SLO) KeptBy(r *tacho.Record) bool {
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
		return fmt.Errorf("goodput %s: limit %v is not valid, use 0 or more %s", s.Metric, s.LimitMillis, m.Unit)
	}
	if !(s.Percentile >= 0 && s.Percentile <= 100) || s.Percentile > 0 && !m.PerEvent {
		return fmt.Errorf("goodput %s: percentile %v is not valid, use 0 to 100 and a metric with many values per request, such as itl.p99:50", s.Metric, s.Percentile)
	}
	return nil
}

// kept reports whether a value meets the limit.
func (s *SLO) kept(m *Metric, v float64) bool {
	if m.MoreIsBetter {
		return v >= s.LimitMillis
	}
	return v <= s.LimitMillis
}

// Validate returns an error with a suggestion if c is not valid.
func (c *Config) Validate() error {
	if !(c.RequestRate >= 0) || math.IsInf(c.RequestRate, 0) {
		return fmt.Errorf("request rate %v is not valid, use requests per second, or 0 for no pacing", c.RequestRate)
	}
	for _, p := range c.Percentiles {
		if !(p >= 0 && p <= 100) {
			return fmt.Errorf("percentile %v is not valid, use a number from 0 to 100", p)
		}
	}
	for _, name := range c.Metrics {
		if !slices.Contains(SectionKeys(), name) {
			return spelling.Unknown("percentile metric", name, SectionKeys())
		}
	}
	if !(c.SteadyThreshold >= 0 && c.SteadyThreshold <= 1) {
		return fmt.Errorf("steady-state threshold %v is not valid, use a share of the concurrency limit above 0 and up to 1", c.SteadyThreshold)
	}
	if err := c.validateSLOs(); err != nil {
		return err
	}
	if !(c.StallMillis >= 0 && c.StallMillis <= maxMillis) {
		return fmt.Errorf("stall threshold %v is not valid, use 0 to %g milliseconds", c.StallMillis, float64(maxMillis))
	}
	if !(c.GPUPrice >= 0 && c.GPUPrice <= maxPrice) {
		return fmt.Errorf("GPU price %v is not valid, use the price per hour, 0 to %g", c.GPUPrice, float64(maxPrice))
	}
	return nil
}

func (c *Config) validateSLOs() error {
	for _, slo := range c.Goodput {
		if err := slo.validate(); err != nil {
			return err
		}
	}
	if c.SLO == "" {
		return nil
	}
	goals, err := ParseSLO(c.SLO)
	if err != nil {
		return fmt.Errorf("SLO: %w", err)
	}
	if slices.ContainsFunc(goals, func(g Condition) bool { return g.Name == GoodputShare }) && len(c.Goodput) == 0 {
		return errors.New("SLO: goodput is the share of requests within all limits of --goodput: add them, as --goodput ttft:500ms,tpot:50ms")
	}
	return nil
}

// Larger numbers make products that JSON cannot represent.
const (
	maxMillis = 1e12
	maxPrice  = 1e9
)

// limits returns the metrics that an SLO can use. The workload determines token counts, so they are
// excluded.
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
