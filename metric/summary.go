package metric

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"tacho"
)

// A Summary is what a stage came to. Pointers are nil where nothing was
// measured, so that nothing is never shown as zero.
type Summary struct {
	Config Config `json:"config"`

	Counts

	Failures []FailureGroup `json:"failures,omitempty"` // most frequent first

	Tokens     Tokens       `json:"tokens"`
	Throughput *Throughput  `json:"throughput"`
	Peaks      *Peaks       `json:"peaks"`
	Rate       *Rate        `json:"rate"`
	Drift      *Drift       `json:"drift"`
	Backlog    *Backlog     `json:"backlog,omitempty"`
	Steady     *SteadyState `json:"steady_state"`
	LimitBound bool         `json:"limit_bound"` // the concurrency limit was reached, so requests may have waited for it

	OneIn        int      `json:"one_in,omitempty"`    // steady state, backlog and the slowest are told by one of so many requests; 0: by all
	SpreadMillis *float64 `json:"spread_ms,omitempty"` // over which a burst left
	Cache        CacheUse `json:"cache"`

	Buffering Buffering `json:"buffering,omitzero"`
	Idle      *Idle     `json:"idle,omitempty"`

	Clock           ClockUse   `json:"clock"`
	Network         NetworkUse `json:"network,omitzero"`
	ITLSlackMillis  float64    `json:"itl_slack_ms,omitempty"`      // by how much gaps may be off at most, 99 % of them
	TTFTSlackMillis float64    `json:"ttft_slack_ms,omitempty"`     // by how much TTFT may be too long at most, for 99 % of the requests
	ExactGapMillis  *float64   `json:"exact_gap_ms,omitempty"`      // p99 of the gaps that are exact, where others are not
	ITLSlackUnknown bool       `json:"itl_slack_unknown,omitempty"` // the run was kept when that was not known yet

	Finishes  []FinishCount     `json:"finishes,omitempty"`  // of successful requests, most frequent first
	Endpoints []EndpointSummary `json:"endpoints,omitempty"` // where there were several

	Groups   []Group   `json:"groups,omitempty"`   // by turn and by label, where there are several
	Sessions *Sessions `json:"sessions,omitempty"` // where they have several turns

	Stalled int                `json:"stalled"`           // successful requests with a stall
	Figures map[string]float64 `json:"figures,omitempty"` // those of Figures that are known, by their names

	Dists   `json:"metrics"` // one for each of All, in order
	Probe   *Probe           `json:"probe,omitempty"` // set by who ran probes
	Verdict Verdict          `json:"verdict"`

	Instruments []Instruments `json:"instruments,omitempty"` // set by who read them

	Where          *Where `json:"where,omitempty"` // the time went
	spent, slowest spent  // what Where is made of, besides Instruments
}

// A FailureGroup is the failures of one cause.
type FailureGroup struct {
	Cause   tacho.Cause `json:"cause"`
	Phase   string      `json:"phase,omitempty"` // of a timeout: connect, send, wait or stream
	Status  int         `json:"status,omitempty"`
	Count   int         `json:"count"`
	FirstS  float64     `json:"first_s"` // when the first of them ended
	Example string      `json:"example"` // what the first of them said
}

// Tokens are the token counts of the successful requests, and how far those
// who counted disagree.
type Tokens struct {
	Input           int         `json:"input"`
	Output          int         `json:"output"`
	InputByServer   int         `json:"input_by_server"`   // requests whose prompt the server counted
	InputByWorkload int         `json:"input_by_workload"` // requests whose prompt only the workload counted
	OutputBy        []CountedBy `json:"output_by"`         // most trusted first
	Cached          int         `json:"cached"`            // prompt tokens the server says came from its cache
	Reasoning       int         `json:"reasoning"`         // output tokens the server says were reasoning

	Prompt     PromptCheck `json:"prompt_check"`
	Exact      int         `json:"exact"`       // requests told to give an exact number of tokens
	Short      int         `json:"short"`       // of Exact: gave fewer
	Long       int         `json:"long"`        // of Exact: gave more
	MoreEvents int         `json:"more_events"` // requests with more token events than output tokens

	SurplusEvents int `json:"surplus_events"` // by how many these are more

	Saturated bool `json:"saturated,omitempty"` // a sum would have been beyond all reason, and was cut there
}

// CountedBy is how many requests one counter counted.
type CountedBy struct {
	Source   tacho.CountSource `json:"source"`
	Requests int               `json:"requests"`
}

// A PromptCheck holds the workload's prompt counts against the server's.
type PromptCheck struct {
	Requests int `json:"requests"` // counted by both
	Differ   int `json:"differ"`   // of Requests: counts not equal
	Asked    int `json:"asked"`    // tokens by the workload's count
	Served   int `json:"served"`   // tokens by the server's count
	Off      int `json:"off"`      // sum of |server - workload|, so that errors do not cancel out
	Worst    int `json:"worst"`    // server - workload, where it is farthest from 0
}

// Throughput is what was served in a second, over the whole duration.
type Throughput struct {
	RequestsPerS     float64  `json:"requests_per_s"`
	GoodPerS         *float64 `json:"good_requests_per_s"`
	OutputTokensPerS float64  `json:"output_tokens_per_s"`
	TotalTokensPerS  float64  `json:"total_tokens_per_s"`
	InputsPerS       float64  `json:"inputs_per_s"`            // texts and documents, of which a request of a model that reads only may have several
	AudioSPerS       float64  `json:"audio_s_per_s,omitempty"` // RTFx: seconds of sound in a second, of successful requests
}

// Peaks are the busiest moments.
type Peaks struct {
	EventsPerS      int     `json:"events_per_s"`       // token events in one second, as vLLM counts its peak output
	TouchingASecond int     `json:"touching_a_second"`  // requests that touch one second, as vLLM counts its peak concurrency
	TokensPerS      float64 `json:"tokens_per_s"`       // output tokens in any second, wherever it begins; in a shorter run, per second of it
	InFlight        int     `json:"requests_in_flight"` // requests truly in flight at one moment, failed ones included
}

// Rate is how the arrivals came out, in requests per second.
type Rate struct {
	ScheduledPerS *float64 `json:"scheduled_per_s"` // by the due times
	AchievedPerS  *float64 `json:"achieved_per_s"`  // by the times of sending
	SpanS         float64  `json:"span_s"`          // from the first due time to the last
}

// Drift is the mean lag of the client at both ends of the schedule: from due,
// or from slot where the limit bound.
type Drift struct {
	FirstTenthMillis float64 `json:"first_tenth_ms"`
	LastTenthMillis  float64 `json:"last_tenth_ms"`
}

// ClockUse is what stamped the arrivals.
type ClockUse struct {
	Wire       int     `json:"wire,omitempty"` // requests
	Kernel     int     `json:"kernel"`         // requests
	Read       int     `json:"read"`           // requests
	Steps      int     `json:"steps"`          // requests during which the wall clock was moved
	WorstStepS float64 `json:"worst_step_s"`   // farthest from 0
	Name       string  `json:"name,omitempty"` // wire, kernel, read or mixed

	WireTimes int `json:"wire_times,omitempty"` // of requests by the wire clock: when they left, and when their token events came
	FellBack  int `json:"fell_back,omitempty"`  // of these: the wire clock missed them, and they are the kernel's
}

// A Dist is one metric over the records of a stage. Stats is nil where the
// metric had no value.
type Dist struct {
	Name  string `json:"name"`
	Unit  Unit   `json:"unit"`
	N     int    `json:"n"`
	Stats *Stats `json:"stats"`
}

// Stats are the statistics of a sample of at least one value. Where somebody
// else's result tells only some of them, the others are no numbers.
type Stats struct {
	Mean        float64      `json:"mean"`
	Median      float64      `json:"median"`
	Std         float64      `json:"std"`
	Min         float64      `json:"min"`
	Max         float64      `json:"max"`
	Percentiles []Percentile `json:"percentiles"`

	MeanInterval   *Interval `json:"mean_interval,omitempty"` // nil: of a group
	MedianInterval *Interval `json:"median_interval,omitempty"`

	Error float64 `json:"error,omitempty"` // how far median, percentiles and deviation may be off, as a part of them; 0 is exact
}

// MarshalJSON leaves out what is no number, which JSON could not hold.
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
	Bound *Bound  `json:"bound,omitempty"` // nil where all times are exact

	Interval *Interval `json:"interval,omitempty"` // nil: of a group
}

// A Probe is what became of the small requests sent beside the load, to feel how
// the server answers a newcomer. Latencies are E2EL, 0 where none succeeded.
type Probe struct {
	Completed    int     `json:"completed"`
	Failed       int     `json:"failed"`
	MedianMillis float64 `json:"median_e2el_ms"`
	P99Millis    float64 `json:"p99_e2el_ms"`
	MaxMillis    float64 `json:"max_e2el_ms"`
}

// Beside adds what was seen beside the requests, and judges anew.
func (s *Summary) Beside(instruments []Instruments, probe *Probe) {
	s.Instruments, s.Probe = instruments, probe
	s.judge()
}

// judge draws the conclusions.
func (s *Summary) judge() {
	s.Figures = figures(s)
	s.Where = s.where()
	s.Verdict = Judge(s)
}

// MeanInput is the length of a prompt on average; 0 where nothing is known of it.
func (s *Summary) MeanInput() float64 {
	return float64(s.Tokens.Input) / float64(max(s.Completed, 1))
}

// At is the distribution of m, a classic metric, at the server that has a metrics
// page: of several, the one under whose address it is.
func (s *Summary) At(page string, m *Metric) Dist {
	for i := range s.Endpoints {
		if strings.HasPrefix(page, s.Endpoints[i].Endpoint) {
			return s.Endpoints[i].Dist(m)
		}
	}
	return s.Dist(m)
}

// always are the percentiles every Dist has, asked for or not: the client's own
// lag and the table of levels are read by them.
var always = []float64{50, 90, 99}

// Percentile is the value of the percentile p.
func (s *Stats) Percentile(p float64) float64 { return s.At(p).Value }

// Bound is what the percentile p truly lies between.
func (s *Stats) Bound(p float64) Bound {
	at := s.At(p)
	if at.Bound == nil {
		return Bound{at.Value, at.Value}
	}
	return *at.Bound
}

// At is the percentile p, which must be asked for or one of 50, 90, 99.
func (s *Stats) At(p float64) Percentile {
	i := slices.IndexFunc(s.Percentiles, func(v Percentile) bool { return v.P == p })
	if i < 0 {
		return Percentile{}
	}
	return s.Percentiles[i]
}

// Dists are distributions, one for each of several metrics.
type Dists []Dist

// Dist is the distribution of m. Its Stats is nil where there was no value.
func (ds Dists) Dist(m *Metric) Dist {
	for _, d := range ds {
		if d.Name == m.Name {
			return d
		}
	}
	return Dist{Name: m.Name, Unit: m.Unit}
}

// Classic is the statistics of m in the classic convention, in which nothing
// measured is 0.
func (s *Summary) Classic(m *Metric) Stats {
	if d := s.Dist(m); d.Stats != nil {
		return *d.Stats
	}
	return Stats{}
}

// CoalescedShare is the part of the token events whose time is only an upper
// bound; nil where there was no event.
func (s *Summary) CoalescedShare() *float64 {
	if s.Events == 0 {
		return nil
	}
	share := float64(s.CoalescedEvents) / float64(s.Events)
	return &share
}
