// Package live collects the state of a run while it runs. A Feed counts the events of
// one load generator and turns them into Ticks. A State adds the ticks of one or many
// generators and returns a Snapshot. Snapshots are plain data with a JSON form, for a
// terminal, a log or a page. Live figures are accurate to 2 %; the report is exact.
package live

import (
	"github.com/tacho-bench/tacho/metric"
)

// A Snapshot is the state of a run at one moment.
type Snapshot struct {
	About  About   `json:"about"`
	Level  Level   `json:"level"`
	Over   bool    `json:"over,omitempty"`  // no level is running
	Doing  string  `json:"doing,omitempty"` // activity between levels
	AtS    float64 `json:"at_s"`            // time since the level began
	Totals Totals  `json:"totals"`          // counts of the level

	Share    *float64 `json:"share,omitempty"`      // finished share of the level, 0..1; nil if unknown
	LeftS    *float64 `json:"left_s,omitempty"`     // time until the level has sent all requests
	RunLeftS *float64 `json:"run_left_s,omitempty"` // time until all levels have sent all requests, at most if Level.AtMost is set

	Now     Point          `json:"now"` // moving window of the last seconds
	Verdict metric.Verdict `json:"verdict"`

	Failures []Failure `json:"failures,omitempty"` // of the level, the latest first
	History  []Point   `json:"history,omitempty"`  // of the level, one for each tick
	Earlier  []Point   `json:"earlier,omitempty"`  // the last points of earlier levels
	TTFT     []Bucket  `json:"ttft_histogram,omitempty"`
	ITL      []Bucket  `json:"itl_histogram,omitempty"`
	Past     []Past    `json:"past,omitempty"`  // finished levels
	Notes    []string  `json:"notes,omitempty"` // messages, latest last
}

// About describes the target of a run.
type About struct {
	Server  string `json:"server,omitempty"`
	Model   string `json:"model,omitempty"`
	Dataset string `json:"dataset,omitempty"`
	Dir     string `json:"dir,omitempty"` // run directory

	Simulated bool `json:"simulated,omitempty"` // a server is a simulated engine
}

// A Level is the plan of a level.
type Level struct {
	Number      int      `json:"number"`                       // from 1
	Of          int      `json:"of,omitempty"`                 // number of levels; 0 if unknown
	Name        string   `json:"name,omitempty"`               // the flags that vary
	Rate        float64  `json:"request_rate_per_s,omitempty"` // 0 means no rate
	Concurrency int      `json:"max_concurrency,omitempty"`    // 0 means no limit
	Sessions    int      `json:"sessions,omitempty"`           // requests or conversations; 0 means until Seconds
	Seconds     float64  `json:"max_seconds,omitempty"`        // 0 means until all sessions are sent
	LaterS      *float64 `json:"later_s,omitempty"`            // duration of the later levels, if known
	Probe       bool     `json:"probe,omitempty"`              // of a search, for which Seconds is what is left of the budget
	AtMost      bool     `json:"at_most,omitempty"`            // Of, Sessions and LaterS are upper bounds, as in a search
	Predicted   bool     `json:"predicted,omitempty"`          // computed in virtual time

	Config metric.Config `json:"-"` // input of the verdict
}

// Word returns what the user calls the level.
func (l *Level) Word() string {
	if l.Probe {
		return "probe"
	}
	return "level"
}

// Planned returns how long requests are sent, if the plan determines it.
func (l *Level) Planned() (seconds float64, ok bool) {
	switch {
	case l.Rate > 0 && l.Sessions > 0 && l.Seconds > 0:
		return min(float64(l.Sessions)/l.Rate, l.Seconds), true
	case l.Rate > 0 && l.Sessions > 0:
		return float64(l.Sessions) / l.Rate, true
	case l.Seconds > 0:
		return l.Seconds, true
	}
	return 0, false
}

// Totals are counts since a level began.
type Totals struct {
	Sent     int64 `json:"sent"`
	Finished int64 `json:"finished"` // successful or failed
	Failed   int64 `json:"failed"`
	Sessions int64 `json:"sessions"` // finished sessions
	Tokens   int64 `json:"tokens"`
}

// InFlight returns the number of requests in flight.
func (t *Totals) InFlight() int64 { return max(t.Sent-t.Finished, 0) }

// A Point is the measurement of an interval of time.
type Point struct {
	Level      int     `json:"level,omitempty"`
	AtS        float64 `json:"at_s"` // end of the interval
	SentPerS   float64 `json:"sent_per_s"`
	ServedPerS float64 `json:"served_per_s"` // successful requests only
	FailedPerS float64 `json:"failed_per_s"`
	TokensPerS float64 `json:"tokens_per_s"`
	InFlight   int64   `json:"in_flight"` // at the end of the interval
	TTFT       Figure  `json:"ttft_ms"`
	TPOT       Figure  `json:"tpot_ms"` // of requests that finished in the interval, as E2EL
	ITL        Figure  `json:"itl_ms"`
	E2EL       Figure  `json:"e2el_ms"`
	Server     *Server `json:"server,omitempty"`
}

// A Figure is the median and the p99 of a latency in milliseconds.
type Figure struct {
	N   int64    `json:"n"`
	P50 *float64 `json:"p50,omitempty"`
	P99 *float64 `json:"p99,omitempty"`
}

// A Bucket is a part of a histogram: N values between two bounds.
type Bucket struct {
	FromMillis  float64 `json:"from_ms"`
	BelowMillis float64 `json:"below_ms"`
	N           int64   `json:"n"`
}

// A Server is a reading of the server's metrics endpoint.
type Server struct {
	Running *float64 `json:"running,omitempty"`
	Queued  *float64 `json:"queued,omitempty"`
	KVShare *float64 `json:"kv_share,omitempty"`
	AgeS    *float64 `json:"age_s,omitempty"` // time since the reading
}

// A Failure counts failures of the same kind, with the message of the latest.
type Failure struct {
	Cause  string  `json:"cause"`
	Status int     `json:"status,omitempty"`
	Count  int64   `json:"count"`
	LastS  float64 `json:"last_s"`
	Text   string  `json:"text"`
}

// A Past is the result of a finished level.
type Past struct {
	Level        Level           `json:"level"`
	Seconds      float64         `json:"duration_s"`
	RequestsPerS float64         `json:"requests_per_s"`
	TokensPerS   float64         `json:"tokens_per_s"`
	TTFTP99      *float64        `json:"ttft_p99_ms,omitempty"`
	TPOTP99      *float64        `json:"tpot_p99_ms,omitempty"`
	E2ELP99      *float64        `json:"e2el_p99_ms,omitempty"`
	ITLP99       *float64        `json:"itl_p99_ms,omitempty"`
	Failed       int             `json:"failed,omitempty"`
	Verdict      metric.Severity `json:"verdict"`
}
