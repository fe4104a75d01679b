package metric

import "fmt"

// Client is how the client itself fared while a stage ran: a load generator that
// does not run measures itself.
type Client struct {
	BusyShare   float64 `json:"busy_share"`   // of the machine's processors, used by the client
	StolenShare float64 `json:"stolen_share"` // of their time, taken by the host of a virtual machine
	WakeMillis  float64 `json:"wake_ms"`      // that one in a hundred goroutines ready to run waited
	GCMillis    float64 `json:"gc_ms"`        // the longest that a collection of garbage stopped the client
	Pauses      Pauses  `json:"pauses"`
	QuotaCores  float64 `json:"quota_cores,omitempty"` // CPU quota of the control group; 0: none
	ThrottledS  float64 `json:"throttled_s,omitempty"` // for which the quota stopped the client
}

// Pauses are the times in which a heartbeat of the client's own did not come.
type Pauses struct {
	LongestMillis float64 `json:"longest_ms"`
	AtS           float64 `json:"at_s"`               // when the longest began
	TotalS        float64 `json:"total_s"`            // of all that were long enough to tell from jitter
	AsleepS       float64 `json:"asleep_s,omitempty"` // of it, with the whole machine suspended
}

// clientRule is a rule that asks about the client, where it was watched.
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
	// longStall is how many milliseconds without a heartbeat are too many,
	longStall = 1000
	// stallPart if they are such a part of the run: less does not reach its p99.
	stallPart = 0.01
)

// paced says whether there was something to send while answers came: a client
// that stands still then changes the load.
func paced(s *Summary) bool { return !allAtOnce(s) || s.Sessions != nil }

// stallMatters says whether a client that stands still changes the load or the
// times: what it does to those that the kernel or the network device stamped is
// known.
func stallMatters(s *Summary) bool { return paced(s) || s.Clock.Read > 0 }

// stalled is the part of the run in which the client stood still.
func stalled(s *Summary, c *Client) float64 {
	return c.Pauses.TotalS / max(s.DurationS, c.Pauses.TotalS, 1e-9)
}

// clientRules ask whether the client could do its work.
var clientRules = []Rule{
	clientRule(Rule{
		Code: "client-stall", Unit: "ms", Note: never, Degraded: 250, Invalid: longStall,
		Doc: "longest time without a heartbeat of the client, also while the machine is suspended: what was due then was sent late or not at all, and what arrived was read late. It is never INVALID for this where all was sent at once, for the load did not change, nor where all such times are less than 1 % of the run, for that does not reach a p99",
		Do:  "see what stopped it (a suspended machine, a stopped process, a CPU quota, swapping) and measure again",
		inWords: func(s *Summary, v float64) string {
			p := s.Config.Client.Pauses
			text := fmt.Sprintf("the client did not run for %.1f s, from %.1f s on", v/1e3, p.AtS)
			if p.AsleepS > 0 {
				text += fmt.Sprintf(", while the machine was suspended for %.1f s", p.AsleepS)
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
		Doc:     "time without a heartbeat, in pauses of 0.1 s and more / duration, where requests had to be sent all along: they left late and together. What that does to the times of tokens is judged by their bounds",
		Do:      "give the client a core of its own and measure again",
		inWords: stalledWords,
	}, func(s *Summary, c *Client) float64 {
		if !paced(s) {
			return 0
		}
		return stalled(s, c)
	}),
	clientRule(Rule{
		Code: "stalled-reads", Unit: "share", Note: never, Degraded: 0.02, Invalid: 0.10,
		Doc:     "the same, where times are those of the read: what came meanwhile has the time at which the client went on, and nothing bounds how wrong that is",
		Do:      "give the client a core of its own and measure again",
		inWords: stalledWords,
	}, func(s *Summary, c *Client) float64 {
		if s.Clock.Read == 0 {
			return 0
		}
		return stalled(s, c)
	}),
	clientRule(Rule{
		Code: "client-throttled", Unit: "share", Note: 0.001, Degraded: 0.05, Invalid: never,
		Doc: "time for which a CPU quota (cgroup) stopped the client / duration: requests left late, and slots stayed empty. What that did to the load is judged by the other rules",
		Do:  "raise or remove the CPU limit of the client's container (Kubernetes: resources.limits.cpu)",
		inWords: func(s *Summary, v float64) string {
			return fmt.Sprintf("a CPU quota of %.2f cores stopped the client for %.1f s (%s of the run)", s.Config.Client.QuotaCores, s.Config.Client.ThrottledS, percent(v))
		},
	}, func(s *Summary, c *Client) float64 { return min(c.ThrottledS/max(s.DurationS, 1e-9), 1) }),
	clientRule(Rule{
		Code: "client-cpu", Unit: "share", Note: never, Degraded: 0.85, Invalid: never,
		Doc: "processor time of the client / that of the machine: a server beside it, or its own streams, had to wait for it",
		Do:  "give the client a machine of its own, or ask for less",
		inWords: func(_ *Summary, v float64) string {
			return fmt.Sprintf("the client used %.0f %% of this machine's processors", 100*v)
		},
	}, func(s *Summary, c *Client) float64 {
		if s.DurationS < 1 {
			return 0 // the start weighs too much
		}
		return c.BusyShare
	}),
	clientRule(Rule{
		Code: "client-steal", Unit: "share", Note: 0.02, Degraded: 0.10, Invalid: never,
		Doc: "processor time that the host took from this virtual machine / all of it: the client stood still without knowing",
		Do:  "measure from a machine that does not share its processors",
		inWords: func(_ *Summary, v float64) string {
			return fmt.Sprintf("the host of this virtual machine took %s of its processor time", percent(v))
		},
	}, func(_ *Summary, c *Client) float64 { return c.StolenShare }),
	clientRule(Rule{
		Code: "client-scheduling", Unit: "ms", Note: 20, Degraded: 200, Invalid: never,
		Doc: "99th percentile of the time for which a goroutine of the client was ready to run and waited for a processor",
		Do:  "stop what else runs on this machine, or give the client more cores",
		inWords: func(_ *Summary, v float64) string {
			return fmt.Sprintf("one in a hundred of the client's wake-ups waited more than %.0f ms for a processor", v)
		},
	}, func(_ *Summary, c *Client) float64 { return c.WakeMillis }),
	clientRule(Rule{
		Code: "client-gc", Unit: "ms", Note: 10, Degraded: 100, Invalid: never,
		Doc: "longest pause of the client for garbage collection",
		Do:  "give the client more cores, or set GOGC=400 in its environment",
		inWords: func(_ *Summary, v float64) string {
			return fmt.Sprintf("the client stood still for more than %.0f ms to collect garbage", v)
		},
	}, func(_ *Summary, c *Client) float64 { return c.GCMillis }),
}

func stalledWords(s *Summary, v float64) string {
	return fmt.Sprintf("the client did not run for %.1f s of %.1f s (%s)", s.Config.Client.Pauses.TotalS, s.DurationS, percent(v))
}
