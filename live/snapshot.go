// Package live is what is known of a run while it goes on. A Feed gathers what
// happens in one load generator and makes Ticks of it; a Board takes ticks, of one
// generator or of many, and says how the run stands, as a Snapshot. All of it is
// plain data with a JSON form, for whoever shows it: a terminal, lines of a log, a
// page. Its figures are for watching, within 2 %; those of the report are exact.
package live

import (
	"tacho/metric"
)

// A Snapshot is a run at one moment.
type Snapshot struct {
	About  About   `json:"about"`
	Level  Level   `json:"level"`
	Over   bool    `json:"over,omitempty"`  // no level runs
	Doing  string  `json:"doing,omitempty"` // what is done meanwhile
	AtS    float64 `json:"at_s"`            // since the level began
	Totals Totals  `json:"totals"`          // of the level

	Share    *float64 `json:"share,omitempty"`      // of the level that is over, 0..1; nil where nobody knows
	LeftS    *float64 `json:"left_s,omitempty"`     // until the level has sent all
	RunLeftS *float64 `json:"run_left_s,omitempty"` // likewise of all levels that are left

	Now     Point          `json:"now"` // the last seconds
	Verdict metric.Verdict `json:"verdict"`

	Failures []Failure `json:"failures,omitempty"` // of the level, the latest first
	History  []Point   `json:"history,omitempty"`  // of the level, one for each tick
	Past     []Past    `json:"past,omitempty"`     // levels that are over
	Notes    []string  `json:"notes,omitempty"`    // what was said meanwhile, the latest last
}

// About is what is measured.
type About struct {
	Server  string `json:"server,omitempty"`
	Model   string `json:"model,omitempty"`
	Dataset string `json:"dataset,omitempty"`
	Dir     string `json:"dir,omitempty"` // where the run is kept
}

// A Level is what the plan asks of a level.
type Level struct {
	Number      int      `json:"number"`                       // from 1
	Of          int      `json:"of,omitempty"`                 // levels there are; 0 where nobody knows
	Name        string   `json:"name,omitempty"`               // what sets it apart, as flags
	Rate        float64  `json:"request_rate_per_s,omitempty"` // asked for; 0 is none
	Concurrency int      `json:"max_concurrency,omitempty"`    // 0 is no limit
	Sessions    int      `json:"sessions,omitempty"`           // requests, or conversations; 0 is until the time is over
	Seconds     float64  `json:"max_seconds,omitempty"`        // 0 is until all are sent
	LaterS      *float64 `json:"later_s,omitempty"`            // what the levels after it take, where the plan tells
	Predicted   bool     `json:"predicted,omitempty"`          // nobody sends it: it is computed
}

// Planned is how long requests are sent, where the plan tells.
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
	Finished int64 `json:"finished"` // well or badly
	Failed   int64 `json:"failed"`
	Sessions int64 `json:"sessions"` // that are over
	Tokens   int64 `json:"tokens"`
}

// InFlight is how many requests are under way.
func (t *Totals) InFlight() int64 { return max(t.Sent-t.Finished, 0) }

// A Point is what happened in a stretch of time.
type Point struct {
	AtS        float64 `json:"at_s"` // where it ends
	SentPerS   float64 `json:"sent_per_s"`
	ServedPerS float64 `json:"served_per_s"` // without those that failed
	TokensPerS float64 `json:"tokens_per_s"`
	InFlight   int64   `json:"in_flight"` // at its end
	TTFT       Figure  `json:"ttft_ms"`
	ITL        Figure  `json:"itl_ms"`
	Server     *Server `json:"server,omitempty"`
}

// A Figure is the middle and the tail of a latency, in milliseconds.
type Figure struct {
	N   int64    `json:"n"`
	P50 *float64 `json:"p50,omitempty"`
	P99 *float64 `json:"p99,omitempty"`
}

// A Server is what its metrics page says.
type Server struct {
	Running *float64 `json:"running,omitempty"`
	Queued  *float64 `json:"queued,omitempty"`
	KVShare *float64 `json:"kv_share,omitempty"`
}

// A Failure is failures that are alike, with the words of the latest.
type Failure struct {
	Cause  string  `json:"cause"`
	Status int     `json:"status,omitempty"`
	Count  int64   `json:"count"`
	LastS  float64 `json:"last_s"`
	Text   string  `json:"text"`
}

// A Past is a level that is over.
type Past struct {
	Level        Level           `json:"level"`
	Seconds      float64         `json:"duration_s"`
	RequestsPerS float64         `json:"requests_per_s"`
	TokensPerS   float64         `json:"tokens_per_s"`
	TTFTP99      *float64        `json:"ttft_p99_ms,omitempty"`
	ITLP99       *float64        `json:"itl_p99_ms,omitempty"`
	Failed       int             `json:"failed,omitempty"`
	Verdict      metric.Severity `json:"verdict"`
}
