package metric

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho"
)

// A Summary holds the results of a stage. A pointer is nil if nothing was measured, so that a missing
// value is never shown as zero.
type Summary struct {
	Config Config `json:"config"`

	Counts
	Begun int `json:"begun"` // sessions of which a request was sent

	Failures []FailureGroup `json:"failures,omitempty"` // most frequent first

	Tokens     Tokens       `json:"tokens"`
	Throughput *Throughput  `json:"throughput"`
	Peaks      *Peaks       `json:"peaks"`
	Rate       *Rate        `json:"rate"`
	Drift      *Drift       `json:"drift"`
	Backlog    *Backlog     `json:"backlog,omitempty"`
	Steady     *SteadyState `json:"steady_state"`
	LimitBound bool         `json:"limit_bound"` // the concurrency limit was reached, so requests may have waited for a slot

	OneIn        int      `json:"one_in,omitempty"`    // one in this many requests is used for steady state, backlog and the slowest requests; 0 means all
	SpreadMillis *float64 `json:"spread_ms,omitempty"` // time in which a burst was sent
	Cache        CacheUse `json:"cache"`

	Buffering Buffering     `json:"buffering,omitzero"`
	Pauses    *ServerPauses `json:"pauses,omitempty"` // nil if there is none
	Idle      *Idle         `json:"idle,omitempty"`

	Clock           ClockUse   `json:"clock"`
	Network         NetworkUse `json:"network,omitzero"`
	ITLSlackMillis  float64    `json:"itl_slack_ms,omitempty"`  // largest error of 99 % of the gaps
	TTFTSlackMillis float64    `json:"ttft_slack_ms,omitempty"` // largest error of 99 % of the TTFT values
	ExactGapMillis  *float64   `json:"exact_gap_ms,omitempty"`  // p99 of the exact gaps, if other gaps are not exact

	Opening *Opening `json:"opening,omitempty"` // answers whose first token is in doubt

	Finishes  []FinishCount     `json:"finishes,omitempty"`  // of successful requests, most frequent first
	Endpoints []EndpointSummary `json:"endpoints,omitempty"` // if there are several

	Groups   []Group   `json:"groups,omitempty"`   // by turn and by label, if there are several
	Sessions *Sessions `json:"sessions,omitempty"` // if sessions have several turns

	Stalled int                `json:"stalled"`           // successful requests with a stall
	Figures map[string]float64 `json:"figures,omitempty"` // known values of Figures, by name

	Dists   `json:"metrics"` // one for each of All, in order
	Probe   *Probe           `json:"probe,omitempty"` // set by the caller, if probes ran
	Verdict Verdict          `json:"verdict"`

	Instruments []Instruments `json:"instruments,omitempty"` // set by the caller, if metrics pages were read

	Where          *Breakdown `json:"where,omitempty"` // latency breakdown
	spent, slowest spent      // input of Breakdown, besides Instruments
}

// A FailureGroup counts the failures with one cause.
type FailureGroup struct {
	Cause   tacho.Cause `json:"cause"`
	Phase   string      `json:"phase,omitempty"` // for a timeout: connect, send, wait or stream
	Status  int         `json:"status,omitempty"`
	Count   int         `json:"count"`
	FirstS  float64     `json:"first_s"` // when the first of these requests ended
	Example string      `json:"example"` // message of the first failure
}

// Tokens are the token counts of the successful requests, and the differences between counts.
type Tokens struct {
	Input           int         `json:"input"`
	Output          int         `json:"output"`
	InputByServer   int         `json:"input_by_server"`   // requests with a prompt counted by the server
	InputByWorkload int         `json:"input_by_workload"` // requests with a prompt counted only by the workload
	OutputBy        []CountedBy `json:"output_by"`         // most trusted first
	Cached          int         `json:"cached"`            // prompt tokens from the server's cache, as reported by the server
	Reasoning       int         `json:"reasoning"`         // reasoning tokens, as reported by the server

	Prompt     PromptCheck `json:"prompt_check"`
	Exact      int         `json:"exact"`       // requests with a fixed number of output tokens
	Short      int         `json:"short"`       // of Exact: returned fewer tokens
	Long       int         `json:"long"`        // of Exact: returned more tokens
	MoreEvents int         `json:"more_events"` // requests with more token events than output tokens

	SurplusEvents int `json:"surplus_events"` // token events beyond the output tokens of these requests

	NoText NoText `json:"no_text,omitzero"`

	Saturated bool `json:"saturated,omitempty"` // a sum was above any plausible number and was limited
}

// CountedBy is the number of requests with one count source.
type CountedBy struct {
	Source   tacho.CountSource `json:"source"`
	Requests int               `json:"requests"`
}

// A PromptCheck compares the workload's prompt counts with the server's.
type PromptCheck struct {
	Requests int `json:"requests"` // counted by both
	Differ   int `json:"differ"`   // of Requests: counts not equal
	Asked    int `json:"asked"`    // tokens counted by the workload
	Served   int `json:"served"`   // tokens counted by the server
	Off      int `json:"off"`      // sum of |server - workload|, so that errors do not cancel out
	Worst    int `json:"worst"`    // server - workload, for the prompt with the largest difference
}

// Throughput is the work per second, over the whole duration.
type Throughput struct {
	RequestsPerS     float64  `json:"requests_per_s"`
	GoodPerS         *float64 `json:"good_requests_per_s"`
	OutputTokensPerS float64  `json:"output_tokens_per_s"`
	TotalTokensPerS  float64  `json:"total_tokens_per_s"`
	InputsPerS       float64  `json:"inputs_per_s"`            // texts and documents; a request to an embedding or scoring model may contain several
	AudioSPerS       float64  `json:"audio_s_per_s,omitempty"` // RTFx: seconds of audio per second, of successful requests
}

// Peaks are the maxima over time.
type Peaks struct {
	EventsPerS      int     `json:"events_per_s"`       // token events in one second, vLLM's definition of peak output
	TouchingASecond int     `json:"touching_a_second"`  // requests active in one second, vLLM's definition of peak concurrency
	TokensPerS      float64 `json:"tokens_per_s"`       // output tokens in any period of one second; in a shorter run, per second of the run
	InFlight        int     `json:"requests_in_flight"` // requests in flight at the same time, including failed ones
}

// Rate compares planned and actual arrivals, in requests per second.
type Rate struct {
	ScheduledPerS *float64 `json:"scheduled_per_s"` // by due times
	AchievedPerS  *float64 `json:"achieved_per_s"`  // by send times
	SpanS         float64  `json:"span_s"`          // from the first due time to the last
}

// Drift is the mean lag of the client at both ends of the schedule: from due, or from slot if the limit
// was reached.
type Drift struct {
	FirstTenthMillis float64 `json:"first_tenth_ms"`
	LastTenthMillis  float64 `json:"last_tenth_ms"`
}

// ClockUse counts the clocks that stamped the arrivals.
type ClockUse struct {
	Wire       int     `json:"wire,omitempty"` // requests
	Kernel     int     `json:"kernel"`         // requests
	Read       int     `json:"read"`           // requests
	Steps      int     `json:"steps"`          // requests during which the wall clock was stepped
	WorstStepS float64 `json:"worst_step_s"`   // farthest from 0
	Name       string  `json:"name,omitempty"` // wire, kernel, read or mixed

	WireTimes int `json:"wire_times,omitempty"` // timestamps of requests with the wire clock: sends and token events
	FellBack  int `json:"fell_back,omitempty"`  // of WireTimes: missed by the wire clock and taken from the kernel
}

// A Dist is one metric over the records of a stage. Stats is nil if the metric has no value.
type Dist struct {
	Name  string `json:"name"`
	Unit  Unit   `json:"unit"`
	N     int    `json:"n"`
	Stats *Stats `json:"stats"`
}

// Stats are the statistics of a sample with at least one value. A result of another tool may contain
// only some statistics; the others are NaN.
type Stats struct {
	Mean        float64      `json:"mean"`
	Median      float64      `json:"median"`
	Std         float64      `json:"std"`
	Min         float64      `json:"min"`
	Max         float64      `json:"max"`
	Percentiles []Percentile `json:"percentiles"`

	MeanInterval   *Interval `json:"mean_interval,omitempty"` // nil for a group
	MedianInterval *Interval `json:"median_interval,omitempty"`

	Error float64 `json:"error,omitempty"` // largest relative error of median, percentiles and standard deviation; 0 means exact
}

// MarshalJSON leaves out NaN, which JSON cannot represent.
func (s Stats) MarshalJSON() ([]byte, error) {
	type plain Stats
	known := func(v *float64) *float64 {
		if math.IsNaN(*v) {
			return nil
		}
		return v
	}
	return json.Marshal(struct {
		Mean   *float64 `json:"mean,omitempty"`
		Median *float64 `json:"median,omitempty"`
		Std    *float64 `json:"std,omitempty"`
		Min    *float64 `json:"min,omitempty"`
		Max    *float64 `json:"max,omitempty"`
		plain
	}{known(&s.Mean), known(&s.Median), known(&s.Std), known(&s.Min), known(&s.Max), plain(s)})
}

// A Percentile is one quantile of a sample.
type Percentile struct {
	P     float64 `json:"p"` // 0..100
	Value float64 `json:"value"`
	Bound *Bound  `json:"bound,omitempty"` // nil if all timestamps are exact

	Interval *Interval `json:"interval,omitempty"` // nil for a group
}

// A Probe summarizes the small requests sent in addition to the load to measure the latency of a new
// user. Latencies are E2EL, and 0 if no probe succeeded.
type Probe struct {
	Completed    int     `json:"completed"`
	Failed       int     `json:"failed"`
	MedianMillis float64 `json:"median_e2el_ms"`
	P99Millis    float64 `json:"p99_e2el_ms"`
	MaxMillis    float64 `json:"max_e2el_ms"`
}

// Conclude adds the server metrics and the probe, and computes figures, breakdown and verdict.
func (s *Summary) Conclude(instruments []Instruments, probe *Probe) {
	s.Instruments, s.Probe = instruments, probe
	s.Figures = figures(s)
	s.Where = s.where()
	s.Verdict = Judge(s)
}

// MeanInput returns the mean length of a prompt, or 0 if unknown.
func (s *Summary) MeanInput() float64 {
	return float64(s.Tokens.Input) / float64(max(s.Completed, 1))
}

// At returns the distribution of m, a classic metric, for the server with the given metrics page. If
// there are several servers, the address of the page selects one.
func (s *Summary) At(page string, m *Metric) Dist {
	for i := range s.Endpoints {
		if strings.HasPrefix(page, s.Endpoints[i].Endpoint) {
			return s.Endpoints[i].Dist(m)
		}
	}
	return s.Dist(m)
}

// alwaysShown are percentiles in every Dist. The rules on client lag, the table of levels and the flat JSON need
// them.
var alwaysShown = []float64{50, 90, 95, 99}

// Percentile returns the value of the percentile p.
func (s *Stats) Percentile(p float64) float64 { return s.At(p).Value }

// Bound returns the range that contains the true percentile p.
func (s *Stats) Bound(p float64) Bound {
	at := s.At(p)
	if at.Bound == nil {
		return Bound{at.Value, at.Value}
	}
	return *at.Bound
}

// At returns the percentile p, which must be configured or one of alwaysShown.
func (s *Stats) At(p float64) Percentile {
	i := slices.IndexFunc(s.Percentiles, func(v Percentile) bool { return v.P == p })
	if i < 0 {
		return Percentile{}
	}
	return s.Percentiles[i]
}

// Dists are the distributions of several metrics.
type Dists []Dist

// Dist returns the distribution of m. Its Stats is nil if there is no value.
func (ds Dists) Dist(m *Metric) Dist {
	for _, d := range ds {
		if d.Name == m.Name {
			return d
		}
	}
	return Dist{Name: m.Name, Unit: m.Unit}
}

// Classic returns the statistics of m for classic reports, with 0 if nothing was measured.
func (s *Summary) Classic(m *Metric) Stats {
	if d := s.Dist(m); d.Stats != nil {
		return *d.Stats
	}
	return Stats{}
}

// CoalescedShare returns the share of token events with a timestamp that is only an upper bound. It is
// nil if there is no event.
func (s *Summary) CoalescedShare() *float64 {
	if s.Events == 0 {
		return nil
	}
	share := float64(s.CoalescedEvents) / float64(s.Events)
	return &share
}
