package metric

import "fmt"

// Client describes the condition of the client during a stage. A load generator that is not scheduled
// measures itself.
type Client struct {
	BusyShare   float64 `json:"busy_share"`   // share of the machine's CPU time used by the client
	StolenShare float64 `json:"stolen_share"` // share of the CPU time taken by the hypervisor
	WakeMillis  float64 `json:"wake_ms"`      // p99 of the time a ready goroutine waited for a CPU
	GCMillis    float64 `json:"gc_ms"`        // longest garbage collection pause
	Pauses      Pauses  `json:"pauses"`
	QuotaCores  float64 `json:"quota_cores,omitempty"` // CPU quota of the cgroup; 0 means none
	ThrottledS  float64 `json:"throttled_s,omitempty"` // time the quota stopped the client
}

// Pauses are periods in which the client's heartbeat was missing.
type Pauses struct {
	LongestMillis float64 `json:"longest_ms"`
	AtS           float64 `json:"at_s"`               // start of the longest pause
	TotalS        float64 `json:"total_s"`            // sum of all pauses long enough to differ from jitter
	AsleepS       float64 `json:"asleep_s,omitempty"` // part of TotalS with the machine suspended
	List          []Stall `json:"list,omitempty"`     // all pauses in TotalS, at most the first MaxStalls
}

// A Stall is one pause of the client.
type Stall struct {
	AtS    float64 `json:"at_s"`
	Millis float64 `json:"ms"`
}

// MaxStalls is the number of pauses of a client that are listed.
const MaxStalls = 100

// stalls returns the known pauses of a client.
func (c *Client) stalls() (out []quiet) {
	if c == nil {
		return nil
	}
	list := c.Pauses.List
	if len(list) == 0 && c.Pauses.TotalS > 0 {
		list = []Stall{{c.Pauses.AtS, c.Pauses.LongestMillis}}
	}
	for _, s := range list {
		out = append(out, (&Pause{AtS: s.AtS, Millis: s.Millis}).quiet())
	}
	return out
}

// clientRule returns a rule about the client. The rule applies if the client was monitored.
func clientRule(r Rule, value func(s *Summary, c *Client) float64) Rule {
	r.value = func(s *Summary) (float64, bool) {
		if s.Config.Client == nil {
			return 0, false
		}
		return value(s, s.Config.Client), true
	}
	return r
}

const (
	// longStall is the length of a pause, in milliseconds, that makes a run INVALID if all
	// pauses together are at least stallPart of the run. Shorter pauses do not affect a p99.
	longStall = 1000
	stallPart = 0.01
)

// paced reports whether requests had to be sent while answers arrived. A pause of the client then
// changes the load.
func paced(s *Summary) bool { return !s.AllAtOnce() || s.Sessions != nil }

// stallMatters reports whether a pause of the client changes the load or the timestamps. The error of
// kernel and wire timestamps is known.
func stallMatters(s *Summary) bool { return paced(s) || s.Clock.Read > 0 }

// stalled returns the share of the run in which the client was not scheduled.
func stalled(s *Summary, c *Client) float64 {
	return c.Pauses.TotalS / max(s.DurationS, c.Pauses.TotalS, 1e-9)
}

// clientRules check if the client could do its work.
var clientRules = []Rule{
	clientRule(Rule{
		Code: "client-stall", Unit: "ms", Note: never, Degraded: 250, Invalid: longStall,
		Doc:    "longest time without a heartbeat of the client, including a suspended machine. Requests left late, and data was read late. A burst, or a run with less than 1 % of such time, is never INVALID",
		Action: "fix the cause (suspend, CPU quota, swapping)",
		text: func(s *Summary, v float64) string {
			p := s.Config.Client.Pauses
			text := fmt.Sprintf("the client was not scheduled for %s from %s s on", Duration(v), Brief(p.AtS))
			if p.AsleepS > 0 {
				text += fmt.Sprintf(" (machine suspended for %s)", Duration(1e3*p.AsleepS))
			}
			return text
		},
	}, func(s *Summary, c *Client) float64 {
		if !stallMatters(s) || stalled(s, c) < stallPart {
			return min(c.Pauses.LongestMillis, longStall)
		}
		return c.Pauses.LongestMillis
	}),
	clientRule(Rule{
		Code: "client-stalled", Unit: "share", Note: never, Degraded: 0.02, Invalid: 0.50,
		Doc:    "time without a heartbeat, in pauses of 0.1 s or more / duration, if requests had to be sent all the time. Requests left late and together",
		Action: "give the client its own core and measure again",
		text:   stalledWords,
	}, func(s *Summary, c *Client) float64 {
		if !paced(s) {
			return 0
		}
		return stalled(s, c)
	}),
	clientRule(Rule{
		Code: "stalled-reads", Unit: "share", Note: never, Degraded: 0.02, Invalid: 0.10,
		Doc:    "the same share, if timestamps are taken at the read. Data of a pause gets the time of its end",
		Action: "give the client its own core and measure again",
		text:   stalledWords,
	}, func(s *Summary, c *Client) float64 {
		if s.Clock.Read == 0 {
			return 0
		}
		return stalled(s, c)
	}),
	clientRule(Rule{
		Code: "client-throttled", Unit: "share", Note: 0.001, Degraded: 0.05, Invalid: never,
		Doc:    "time that a CPU quota (cgroup) stopped the client / duration. Requests left late, and slots stayed empty",
		Action: "raise the CPU limit of its container (resources.limits.cpu)",
		text: func(s *Summary, v float64) string {
			return fmt.Sprintf("a CPU quota of %s cores stopped the client for %s (%s of the run)", Setting(s.Config.Client.QuotaCores), Duration(1e3*s.Config.Client.ThrottledS), Percent(v))
		},
	}, func(s *Summary, c *Client) float64 { return min(c.ThrottledS/max(s.DurationS, 1e-9), 1) }),
	clientRule(Rule{
		Code: "client-cpu", Unit: "share", Note: never, Degraded: 0.85, Invalid: never,
		Doc:    "CPU time of the client / CPU time of the machine. A local server, or the client's own streams, had to wait",
		Action: "move the client to its own machine or reduce the load",
		text: func(_ *Summary, v float64) string {
			return fmt.Sprintf("the client used %s of the machine's CPU time", Percent(v))
		},
	}, func(s *Summary, c *Client) float64 {
		if s.DurationS < 1 {
			return 0 // in a short run the start dominates
		}
		return c.BusyShare
	}),
	clientRule(Rule{
		Code: "client-steal", Unit: "share", Note: 0.02, Degraded: 0.10, Invalid: never,
		Doc:    "CPU time taken by the hypervisor from this virtual machine / all CPU time. The client cannot notice these pauses",
		Action: "measure from a machine with dedicated CPUs",
		text: func(_ *Summary, v float64) string {
			return fmt.Sprintf("the hypervisor took %s of the CPU time of this virtual machine", Percent(v))
		},
	}, func(_ *Summary, c *Client) float64 { return c.StolenShare }),
	clientRule(Rule{
		Code: "client-scheduling", Unit: "ms", Note: 20, Degraded: 200, Invalid: never,
		Doc:    "99th percentile of the time a ready goroutine of the client waited for a CPU",
		Action: "stop other programs on this machine, or add cores",
		text: func(_ *Summary, v float64) string {
			return fmt.Sprintf("1 %% of the client's wakeups waited more than %s for a CPU", Duration(v))
		},
	}, func(_ *Summary, c *Client) float64 { return c.WakeMillis }),
	clientRule(Rule{
		Code: "client-gc", Unit: "ms", Note: 10, Degraded: 100, Invalid: never,
		Doc:    "longest garbage collection pause of the client",
		Action: "give the client more cores, or set GOGC=400",
		text: func(_ *Summary, v float64) string {
			return fmt.Sprintf("garbage collection stopped the client for more than %s", Duration(v))
		},
	}, func(_ *Summary, c *Client) float64 { return c.GCMillis }),
}

func stalledWords(s *Summary, v float64) string {
	return fmt.Sprintf("the client was not scheduled for %s of %s (%s)", Duration(1e3*s.Config.Client.Pauses.TotalS), Duration(1e3*s.DurationS), Percent(v))
}
