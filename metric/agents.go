package metric

import "time"

// An Agent is one of several load generators that shared a level, and how it
// fared.
type Agent struct {
	Name      string        `json:"name"`
	Host      string        `json:"host,omitempty"`
	Share     int           `json:"share"` // which of the shares it had, from 0
	CPUs      int           `json:"cpus,omitempty"`
	Requests  int           `json:"requests"`                   // that finished
	LagMillis float64       `json:"lag_p99_ms"`                 // from due, or of a closed loop from the slot, to sent
	Offset    time.Duration `json:"clock_offset_ns"`            // of its clock from the coordinator's, when the level ended
	OffsetErr time.Duration `json:"clock_offset_error_ns"`      // at most
	Moved     time.Duration `json:"clock_correction_ns"`        // the furthest that times of its records were moved
	SameClock bool          `json:"same_clock,omitempty"`       // it has the coordinator's clock: it runs on the same machine
	Client    *Client       `json:"client,omitempty"`           // nil unknown
	Missing   string        `json:"missing,omitempty"`          // why its share is not whole; empty where it is
	Retaken   bool          `json:"taken_over,omitempty"`       // it did what was left of another's share
	SpoolMost int64         `json:"spool_most_bytes,omitempty"` // that waited to be sent, at most
}

// WorstClient is how the agents fared, each figure that of the one who fared
// worst; nil where none is known.
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
