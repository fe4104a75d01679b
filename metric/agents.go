package metric

import (
	"fmt"
	"time"
)

// An Agent is one of several load generators that shared a level.
type Agent struct {
	Name      string        `json:"name"`
	Host      string        `json:"host,omitempty"`
	Share     int           `json:"share"` // index of its share, from 0
	CPUs      int           `json:"cpus,omitempty"`
	Requests  int           `json:"requests"`                   // finished requests
	LagMillis float64       `json:"lag_p99_ms"`                 // from due, or from slot in a closed loop, to sent
	Offset    time.Duration `json:"clock_offset_ns"`            // offset of its clock from the coordinator's, at the end of the level
	OffsetErr time.Duration `json:"clock_offset_error_ns"`      // largest error of Offset
	Moved     time.Duration `json:"clock_correction_ns"`        // largest correction of the times in its records
	SameClock bool          `json:"same_clock,omitempty"`       // runs on the same machine and has the coordinator's clock
	Client    *Client       `json:"client,omitempty"`           // nil means unknown
	Missing   string        `json:"missing,omitempty"`          // why its share is incomplete; empty if it is complete
	Retaken   bool          `json:"taken_over,omitempty"`       // took over the rest of another agent's share
	SpoolMost int64         `json:"spool_most_bytes,omitempty"` // largest number of bytes waiting to be sent

	NotReceived int  `json:"not_received,omitempty"`       // requests that it sent as far as is known, without a record
	Continued   bool `json:"may_have_continued,omitempty"` // it was not heard any more, so it may have sent more than is known
	Extra       int  `json:"extra_requests,omitempty"`     // most requests that it sent and another agent sent again
}

// NotReceived returns the number of requests that agents sent as far as is known, without a record.
func (c *Config) NotReceived() (n int) {
	for i := range c.Agents {
		n += c.Agents[i].NotReceived
	}
	return n
}

var notReceivedRule = Rule{
	Code: "not-received", Unit: "share", Note: never, Degraded: 0, Invalid: 0.05,
	Action: "check the lost agents and their spools, and measure again",
	Doc:    "requests that agents sent, but whose records did not arrive / all requests sent. No figure contains these requests",
	value: func(s *Summary) (float64, bool) {
		n := s.Config.NotReceived()
		return ratio(n, n+s.Requests)
	},
	text: func(s *Summary, v float64) string {
		n := s.Config.NotReceived()
		return fmt.Sprintf("the records of %d of %d sent requests were not received (%s)", n, n+s.Requests, Percent(v))
	},
}

// WorstClient returns the worst value of each figure over all agents, or nil if none is known.
func WorstClient(agents []Agent) *Client {
	var out *Client
	for i := range agents {
		c := agents[i].Client
		if c == nil {
			continue
		}
		if out == nil {
			out = &Client{}
		}
		out.BusyShare = max(out.BusyShare, c.BusyShare)
		out.StolenShare = max(out.StolenShare, c.StolenShare)
		out.WakeMillis = max(out.WakeMillis, c.WakeMillis)
		out.GCMillis = max(out.GCMillis, c.GCMillis)
		if c.Pauses.LongestMillis > out.Pauses.LongestMillis {
			out.Pauses.LongestMillis, out.Pauses.AtS = c.Pauses.LongestMillis, c.Pauses.AtS
		}
		if c.ThrottledS > out.ThrottledS || out.QuotaCores == 0 {
			out.QuotaCores, out.ThrottledS = c.QuotaCores, c.ThrottledS
		}
		out.Pauses.TotalS = max(out.Pauses.TotalS, c.Pauses.TotalS)
		out.Pauses.AsleepS = max(out.Pauses.AsleepS, c.Pauses.AsleepS)
	}
	return out
}
